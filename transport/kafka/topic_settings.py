"""The settings that a topic of Kafka 3.9 can have, and Kafka's words for values that it cannot have.

Brokers take an older release's settings and values, which are a part of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_VERSION: Final = re.compile(r"(0\.(8\.[0-2]|9\.0|10\.[0-2]|11\.0)|[1-4]\.[0-9])(\.[0-9.]+)?(-IV[0-9])?")
_REPLICAS: Final = re.compile(r"([0-9]+:[0-9]+)?")
_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_GZIP_LEVELS: Final = range(1, 10)
_GZIP_DEFAULT: Final = -1

Check = Callable[[str, str], str | None]
"""Takes the name of a setting and the text of its value, and returns why Kafka refuses it."""


def _invalid(shown: object, name: str, reason: str) -> str:
    return f"Invalid value {shown} for configuration {name}: {reason}"


def _parsed(text: str, most: int) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text.strip()) else None
    return number if number is not None and -most - 1 <= number <= most else None


def _number(kind: str, most: int, at_least: int | None, at_most: int | None = None) -> Check:
    def check(name: str, text: str) -> str | None:
        number = _parsed(text, most)
        if number is None:
            return _invalid(text, name, f"Not a number of type {kind}")
        return _out_of_bounds(name, number, at_least, at_most)

    return check


def _out_of_bounds(name: str, number: float, at_least: int | None, at_most: int | None) -> str | None:
    if at_least is not None and number < at_least:
        return _invalid(number, name, f"Value must be at least {at_least}")
    if at_most is not None and number > at_most:
        return _invalid(number, name, f"Value must be no more than {at_most}")
    return None


def _int(at_least: int, at_most: int | None = None) -> Check:
    return _number("INT", _INT_MAX, at_least, at_most)


def _long(at_least: int | None) -> Check:
    return _number("LONG", _LONG_MAX, at_least)


def _ratio(name: str, text: str) -> str | None:
    if _DOUBLE.fullmatch(text.strip()) is None:
        return _invalid(text, name, "Not a number of type DOUBLE")
    return _out_of_bounds(name, float(text.strip().rstrip("fFdD")), 0, 1)


def _gzip_level(name: str, text: str) -> str | None:
    number = _parsed(text, _INT_MAX)
    if number is None:
        return _invalid(text, name, "Not a number of type INT")
    is_level = number == _GZIP_DEFAULT or number in _GZIP_LEVELS
    return None if is_level else _invalid(number, name, "Value must be between 1 and 9 or equal to -1")


def _boolean(name: str, text: str) -> str | None:
    is_either = text.strip().lower() in {"true", "false"}
    return None if is_either else _invalid(text, name, "Expected value to be either true or false")


def _one_of(*choices: str) -> Check:
    def check(name: str, text: str) -> str | None:
        is_one = text.strip() in choices
        return None if is_one else _invalid(text.strip(), name, f"String must be one of: {', '.join(choices)}")

    return check


def _some_of(*choices: str) -> Check:
    def check(name: str, text: str) -> str | None:
        wrong = next((part for part in _parts(text) if part not in choices), None)
        return None if wrong is None else _invalid(wrong, name, f"String must be one of: {', '.join(choices)}")

    return check


def _parts(text: str) -> list[str]:
    return re.split(r"\s*,\s*", text.strip()) if text.strip() else []


def _replicas(name: str, text: str) -> str | None:
    parts = _parts(text)
    if parts[:1] == ["*"] or all(_REPLICAS.fullmatch(part.strip()) for part in parts):
        return None
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    reason = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
    return _invalid(f"[{', '.join(parts)}]", name, reason)


def _version(name: str, text: str) -> str | None:
    version = text.strip()
    is_one = _VERSION.fullmatch(version) is not None
    return None if is_one else _invalid(version, name, f"Version {version} is not a valid version")


MIN_COMPACTION_LAG: Final = "min.compaction.lag.ms"
MAX_COMPACTION_LAG: Final = "max.compaction.lag.ms"
REMOTE_STORAGE: Final = "remote.storage.enable"
_NOT_IN_ZOOKEEPER_MODE: Final = ("remote.log.delete.on.disable", "remote.log.copy.disable")

TOPIC_SETTINGS: Final[Mapping[str, Check]] = {
    "segment.bytes": _int(14),
    "segment.ms": _long(1),
    "segment.jitter.ms": _long(0),
    "segment.index.bytes": _int(4),
    "flush.messages": _long(1),
    "flush.ms": _long(0),
    "retention.bytes": _long(None),
    "retention.ms": _long(-1),
    "max.message.bytes": _int(0),
    "index.interval.bytes": _int(0),
    "delete.retention.ms": _long(0),
    MIN_COMPACTION_LAG: _long(0),
    MAX_COMPACTION_LAG: _long(1),
    "file.delete.delay.ms": _long(0),
    "min.cleanable.dirty.ratio": _ratio,
    "cleanup.policy": _some_of("compact", "delete"),
    "unclean.leader.election.enable": _boolean,
    "min.insync.replicas": _int(1),
    "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "compression.gzip.level": _gzip_level,
    "compression.lz4.level": _int(1, 17),
    "compression.zstd.level": _int(-131_072, 22),
    "preallocate": _boolean,
    "message.format.version": _version,
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "message.timestamp.difference.max.ms": _long(0),
    "message.timestamp.before.max.ms": _long(0),
    "message.timestamp.after.max.ms": _long(0),
    "leader.replication.throttled.replicas": _replicas,
    "follower.replication.throttled.replicas": _replicas,
    "message.downconversion.enable": _boolean,
    REMOTE_STORAGE: _boolean,
    "local.retention.ms": _long(-2),
    "local.retention.bytes": _long(-2),
    "remote.log.copy.disable": _boolean,
    "remote.log.delete.on.disable": _boolean,
}
"""The settings in the order in which Kafka judges them."""


def topic_settings_fault(configs: Sequence[tuple[str, str]], *, has_remote_storage: bool = False) -> str | None:
    """Return why a topic cannot have these settings, None if it can; `has_remote_storage` is a setting of brokers."""
    given = dict(configs)
    unknown = next((name for name in given if name not in TOPIC_SETTINGS), None)
    if unknown is not None:
        return f"Unknown topic config name: {unknown}"
    checked = (check(name, given[name]) for name, check in TOPIC_SETTINGS.items() if name in given)
    fault = next((fault for fault in checked if fault is not None), None)
    return fault or _conflict(given) or _remote_fault(given, has_remote_storage=has_remote_storage)


def _conflict(given: Mapping[str, str]) -> str | None:
    least, most = int(given.get(MIN_COMPACTION_LAG, 0)), int(given.get(MAX_COMPACTION_LAG, _LONG_MAX))
    if least <= most:
        return None
    return f"conflict topic config setting {MIN_COMPACTION_LAG} ({least}) > {MAX_COMPACTION_LAG} ({most})"


def _remote_fault(given: Mapping[str, str], *, has_remote_storage: bool) -> str | None:
    if any(_is_true(given, name) for name in _NOT_IN_ZOOKEEPER_MODE):
        names = " or ".join(f"`{name}`" for name in _NOT_IN_ZOOKEEPER_MODE)
        return f"It is invalid to set {names} under Zookeeper's mode."
    if not _is_true(given, REMOTE_STORAGE):
        return None
    if not has_remote_storage:
        return (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    is_compacted = "compact" in given.get("cleanup.policy", "")
    return "Remote log storage is unsupported for the compacted topics" if is_compacted else None


def _is_true(given: Mapping[str, str], name: str) -> bool:
    return given.get(name, "").strip().lower() == "true"
