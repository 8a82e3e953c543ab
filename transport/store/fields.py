"""The fields of znodes, with their types and bounds.

A value out of bounds could neither be sent to brokers nor be written again. It is rejected when it is read, so that
only its own row is lost.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import orjson

from transport.metadata import MAX_NUMBER, MAX_PORT, MAX_TEXT, is_topic_id
from transport.store.protocol import UNREADABLE

_INTEGERS: Final = frozenset({int})
_MAX_HOST: Final = 255


class UndecodableZnode(Exception):
    """The data of a znode does not have the format of its path."""

    def __init__(self, path: str, fault: str) -> None:
        super().__init__(f"{path}: {fault}")
        self.path = path
        self.fault = fault


def shown(value: object) -> str:
    """Return a value as quoted in errors, shortened if it is long."""
    return f"{value!r:.100}"


def load(path: str, data: bytes) -> dict[str, Any]:
    """Return the JSON object in a znode. Raises UndecodableZnode, as all functions here do."""
    require_readable(path, data)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UndecodableZnode(path, f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise UndecodableZnode(path, "not a JSON object")
    return value


def require_readable(path: str, data: bytes) -> None:
    """Raise UndecodableZnode for a znode that we may not read."""
    if data == UNREADABLE:
        raise UndecodableZnode(path, "may not be read: its ACL forbids it to this identity")


def integer(path: str, value: object, name: str) -> int:
    """Return an integer of any size."""
    if type(value) is not int:
        raise UndecodableZnode(path, f"{name} must be an integer, is {shown(value)}")
    return value


def number(path: str, value: object, name: str, least: int = 0, most: int = MAX_NUMBER) -> int:
    """Return an integer within bounds."""
    if type(value) is int and least <= value <= most:
        return value
    raise UndecodableZnode(path, f"{name} must be from {least} to {most}, is {integer(path, value, name)}")


def string(path: str, value: object, name: str) -> str:
    """Return a string of any length."""
    if not isinstance(value, str):
        raise UndecodableZnode(path, f"{name} must be a string, is {shown(value)}")
    return value


def text(path: str, value: object, name: str) -> str:
    """Return a string of at most MAX_TEXT characters."""
    found = string(path, value, name)
    if len(found) > MAX_TEXT:
        raise UndecodableZnode(path, f"{name} must have up to {MAX_TEXT} characters, has {len(found)}")
    return found


def optional_text(path: str, value: object, name: str) -> str | None:
    """Return a string, None if it is missing."""
    return None if value is None else text(path, value, name)


def optional_topic_id(path: str, value: object, name: str) -> str | None:
    """Return a topic's id, None if it is missing."""
    topic_id = optional_text(path, value, name)
    if topic_id is not None and not is_topic_id(topic_id):
        raise UndecodableZnode(path, f"{name} must be letters, digits, '.', '_' and '-', is {shown(topic_id)}")
    return topic_id


def host(path: str, value: object) -> str:
    """Return the name or address of a host that can be looked up."""
    name = text(path, value, "host")
    try:
        is_sound = len(name.encode("idna")) <= _MAX_HOST
    except UnicodeError:
        is_sound = False
    if not (is_sound and name and name.isprintable() and " " not in name):
        raise UndecodableZnode(path, f"host must be a name or an address, is {shown(name)}")
    return name


def port(path: str, value: object) -> int:
    """Return a port, 1 to 65535."""
    return number(path, value, "port", 1, MAX_PORT)


def mapping(path: str, value: object, name: str) -> dict[str, Any]:
    """Return an object."""
    if not isinstance(value, dict):
        raise UndecodableZnode(path, f"{name} must be an object, is {shown(value)}")
    return value


def integers(path: str, value: object, name: str) -> tuple[int, ...]:
    """Return a list of integers of any size."""
    return _integers(path, value, name)[0]


def brokers(path: str, value: object, name: str) -> tuple[int, ...]:
    """Return a list of broker ids without duplicates."""
    ids, fault = _integers(path, value, name)
    if fault:
        raise UndecodableZnode(path, f"{name} {shown(value)} {fault}")
    return ids


def _integers(path: str, value: object, name: str) -> tuple[tuple[int, ...], str]:
    if not isinstance(value, list) or not _INTEGERS.issuperset(map(type, value)):
        raise UndecodableZnode(path, f"{name} must be a list of integers, is {shown(value)}")
    return shared(tuple(value))


@lru_cache(maxsize=1 << 16)
def shared(ids: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """Return one object for equal tuples, and the reason why they are not broker ids, or "" if they are.

    A cluster has few different replica sets, and each of them occurs many times.
    """
    if len(set(ids)) != len(ids):
        return ids, "names a broker twice"
    are_ids = not ids or (min(ids) >= 0 and max(ids) <= MAX_NUMBER)
    return ids, "" if are_ids else f"must be broker ids from 0 to {MAX_NUMBER}"
