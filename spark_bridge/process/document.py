"""Frozen classes from JSON documents, read by their annotations, so that errors can name the field."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar, cast

from attrs import NOTHING, fields_dict, has, resolve_types

from spark_bridge.errors import PlanError
from spark_bridge.inputs.sources import Url, source_of

T = TypeVar("T")

_PLAIN: Final[Mapping[object, tuple[tuple[type, ...], str]]] = {
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    types.NoneType: ((types.NoneType,), "null"),
}


def from_document(cls: type[T], document: object, name: str) -> T:
    """Return an attrs class read from a JSON object; `name` is the document's name in errors.

    Raises:
        PlanError: A field is missing, unknown or of another type; the text names it.
    """
    if not isinstance(document, dict):
        raise PlanError(f"{name} must be an object, not {document!r}")
    known = fields_dict(resolve_types(cls))  # type: ignore[type-var,arg-type]  # callers pass attrs classes
    needed = {key for key, attribute in known.items() if attribute.default is NOTHING}
    if missing := sorted(needed - document.keys()):
        raise PlanError(f"{name} lacks {missing[0]!r}")
    if unknown := sorted(document.keys() - known.keys()):
        raise PlanError(f"{name} has no field {unknown[0]!r}: choose from {', '.join(known)}")
    values = {key: _read(known[key].type, value, f"{name}.{key}") for key, value in document.items()}
    return cast("Callable[..., T]", cls)(**values)


def _read(kind: object, value: object, name: str) -> object:
    """Read a value of an annotated type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if Url in arguments and (value is not None or types.NoneType not in arguments):
            return source_of(_plain(str, value, name))
        # The only other annotation is `X | None`.
        return None if value is None else _read(arguments[0], value, name)
    if origin in (tuple, frozenset):
        return _collection(origin, arguments[0], value, name)
    if origin is not None:
        return _values(arguments[1], value, name)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _choice(kind, value, name)
    if isinstance(kind, type) and has(kind):
        return from_document(kind, value, name)
    return Path(_plain(str, value, name)) if kind is Path else _plain(kind, value, name)


def _plain(kind: object, value: object, name: str) -> typing.Any:  # noqa: ANN401 (JSON's own values)
    accepted, words = _PLAIN[kind]
    if type(value) not in accepted:
        raise PlanError(f"{name} must be {words}, not {value!r}")
    return value


def _collection(kind: type, member: object, value: object, name: str) -> object:
    if not isinstance(value, list):
        raise PlanError(f"{name} must be a list, not {value!r}")
    return kind(_read(member, item, f"{name}[{place}]") for place, item in enumerate(value))


def _values(kind: object, value: object, name: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise PlanError(f"{name} must be an object, not {value!r}")
    return {key: _read(kind, item, f"{name}.{key}") for key, item in value.items()}


def _choice(kind: type[StrEnum], value: object, name: str) -> StrEnum:
    for member in kind:
        if member == value:
            return member
    raise PlanError(f"{name} must be one of {', '.join(kind)}, not {value!r}")
