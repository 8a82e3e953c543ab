"""Columns and documents that planning does not know: what they are if that can be told, and what was meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

_PLAN: Final = "a plan that `klamm plan` wrote, and no cluster"

FOREIGN: Final[Mapping[str, str]] = {
    "brokerCapacities": "Cruise Control's capacity.json",
    "brokerSets": "Cruise Control's brokerSets.json",
    "KafkaBrokerState": "what Cruise Control answers to kafka_cluster_state",
    "KafkaPartitionState": "what Cruise Control answers to kafka_cluster_state",
    "DiskMB": "what Cruise Control answers to load",
    "networkInbound": "what Cruise Control answers to partition_load",
    "proposals": "what Cruise Control answers to proposals",
    "topics": "what kafka-reassign-partitions takes as --topics-to-move-json-file",
    "before": _PLAN,
    "after": _PLAN,
}
"""Documents and tables of others, by a name that only they have."""

_MEANT: Final[Mapping[str, str]] = {
    "size": "bytes",
    "log_size": "bytes",
    "broker": "id",
    "broker_id": "id",
    "brokerid": "id",
    "node_id": "id",
    "zone": "rack",
    "az": "rack",
    "status": "state",
}
"""Names of other tools for our columns, which no likeness of spelling finds."""


_SEPARATORS: Final[Mapping[str, str]] = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators that other programs write; no name of a column has any of them."""


def separator(name: str) -> str | None:
    """Return what stands between columns where a table's first line was read as one name; None if it is one."""
    return next((mark for mark in _SEPARATORS if mark in name), None)


def refused(names: Collection[str], known: Sequence[str], beside: Collection[str] = ()) -> str | None:
    """Return which of some names the refusal of a table should be about, None if all are known.

    Args:
        names: The names in the table, in their order.
        known: The names of what is read.
        beside: Names that may stand there, too.
    """
    strange = [name for name in names if name not in known and name not in beside]
    return next((name for name in strange if name in FOREIGN), strange[0] if strange else None)


def nearest(name: str, known: Sequence[str], beside: Collection[str] = ()) -> str | None:
    """Return the known name that was meant, in whatever case it was written; None if there is none like it."""
    lower = name.strip().lower()
    if _MEANT.get(lower) in known:
        return _MEANT[lower]
    near = get_close_matches(lower, [*known, *sorted(beside)], n=1)
    return near[0] if near else None


def complaint(name: str, known: Sequence[str], table: str, beside: Collection[str] = ()) -> str:
    """Say what is wrong with an unknown column.

    Args:
        name: Its name.
        known: The names of what is read.
        table: What should have been given, with its article.
        beside: Names that may stand there, too.
    """
    if mark := separator(name):
        return f"its columns are separated by {_SEPARATORS[mark]}: separate them by commas"
    if name in FOREIGN:
        return f"this is {FOREIGN[name]}: {table} has the columns {', '.join(known)}"
    meant = nearest(name, known, beside)
    cure = f"did you mean {meant}? Known are" if meant else "known are"
    return f"column {name!r} is unknown: {cure} {', '.join(known)}"
