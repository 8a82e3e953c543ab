"""Columns and documents that planning does not know: the tool that wrote them, or the name that was meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

_PLAN: Final = "a plan written by `klamm plan`, not a cluster"

FOREIGN: Final[Mapping[str, str]] = {
    "brokerCapacities": "Cruise Control's capacity.json",
    "brokerSets": "Cruise Control's brokerSets.json",
    "KafkaBrokerState": "Cruise Control's answer to kafka_cluster_state",
    "KafkaPartitionState": "Cruise Control's answer to kafka_cluster_state",
    "DiskMB": "Cruise Control's answer to load",
    "networkInbound": "Cruise Control's answer to partition_load",
    "proposals": "Cruise Control's answer to proposals",
    "topics": "the --topics-to-move-json-file of kafka-reassign-partitions",
    "before": _PLAN,
    "after": _PLAN,
}
"""Documents and tables of other tools, each by a name that only it contains."""

NOT_PLANNED: Final[Mapping[str, str]] = {
    "log_dirs": (
        "plans do not choose the log directories of replicas: leave it out, and give the bytes of all directories of a "
        "broker as disk"
    ),
}
"""Columns of things that plans do not decide, each with the remedy."""

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
"""Other tools' names for our columns that are not similar in spelling."""


SEPARATORS: Final[Mapping[str, str]] = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators that other programs write; no column's name contains one."""


def separator(name: str) -> str | None:
    """Return the separator in a table's first line that was read as a single name; None if it is a single name."""
    return next((mark for mark in SEPARATORS if mark in name), None)


def nearest(name: str, known: Sequence[str], beside: Collection[str] = ()) -> str | None:
    """Return the known name that was meant, ignoring case; None if there is no similar one."""
    lower = name.strip().lower()
    if _MEANT.get(lower) in known:
        return _MEANT[lower]
    near = get_close_matches(lower, [*known, *sorted(beside)], n=1)
    return near[0] if near else None
