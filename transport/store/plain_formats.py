"""Znodes in the plain form in which Kafka and Klamm write them, decoded by one compiled call.

A controller reads up to millions of them when it takes office. Each function returns None for data with an unknown key,
a value of another type or a number out of bounds. `transport.store.formats` then decodes it leniently, and either
accepts it or names its fault. Both ways return equal values for whatever is decoded here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from transport.metadata import (
    MAX_NUMBER,
    MAX_RISING_EPOCH,
    NO_LEADER,
    LeaderAndIsr,
    ReplicaAssignment,
    is_topic_id,
)
from transport.store import fields

_CACHED: Final = 1 << 16

_ISR: Final = b'"isr":'
_MINUS: Final = b'"-'
_ESCAPE: Final = b"\\"

_Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
_Brokers = tuple[int, ...]


class _Epochs(Struct, forbid_unknown_fields=True, gc=False):
    controller_epoch: _Number
    leader: Annotated[int, Meta(ge=NO_LEADER, le=MAX_NUMBER)]
    leader_epoch: Annotated[int, Meta(ge=0, le=MAX_RISING_EPOCH)]
    isr: tuple[()]
    version: _Number = 1


class _Isr(Struct, forbid_unknown_fields=True, gc=False):
    isr: _Brokers


class _Topic(Struct, forbid_unknown_fields=True, gc=False):
    partitions: dict[_Number, _Brokers]
    topic_id: str
    adding_replicas: dict[str, _Brokers] = {}
    removing_replicas: dict[str, _Brokers] = {}
    version: _Number = 1


_decode_epochs: Final = msgspec.json.Decoder(_Epochs).decode
_decode_isr: Final = msgspec.json.Decoder(_Isr).decode
_decode_topic: Final = msgspec.json.Decoder(_Topic).decode


def partition_state(data: bytes, version: int) -> LeaderAndIsr | None:
    """Return the state of a partition; `version` is the dataVersion of its znode.

    What stands before the ISR, and the ISR, are decoded apart: most partitions have either in common with others.
    """
    before, _, after = data.partition(_ISR)
    try:
        leader, leader_epoch, controller_epoch = _epochs(before)
        isr, fault = _isr(after)
    except msgspec.DecodeError:
        return None
    return None if fault else LeaderAndIsr(leader, leader_epoch, isr, version, controller_epoch)


@lru_cache(_CACHED)
def _epochs(before: bytes) -> tuple[int, int, int]:
    """Return the leader, its epoch and the controller's from what stands before the ISR. Raises DecodeError."""
    state = _decode_epochs(before + _ISR + b"[]}")
    return state.leader, state.leader_epoch, state.controller_epoch


@lru_cache(_CACHED)
def _isr(after: bytes) -> tuple[tuple[int, ...], str]:
    """Return one ISR for equal ones, and its fault, from its list and the end of the object. Raises DecodeError."""
    return fields.shared(_decode_isr(b"{" + _ISR + after).isr)


def topic(data: bytes) -> tuple[dict[int, ReplicaAssignment], str] | None:
    """Return the assignment and the id of a topic none of whose partitions is being reassigned."""
    try:
        found = _decode_topic(data)
    except msgspec.DecodeError:
        return None
    if found.adding_replicas or found.removing_replicas or not is_topic_id(found.topic_id):
        return None
    # The decoder takes "-0" for a number, also where a letter of it is escaped.
    if _MINUS in data or _ESCAPE in data:
        return None
    numbers = list(found.partitions)
    assignments = [each for each in map(_assignment, found.partitions.values()) if each]
    if len(assignments) < len(numbers):
        return None
    partitions = dict(zip(numbers, assignments, strict=True))
    return partitions if numbers == sorted(numbers) else dict(sorted(partitions.items())), found.topic_id


@lru_cache(_CACHED)
def _assignment(ids: tuple[int, ...]) -> ReplicaAssignment | None:
    """Return one assignment for equal lists of replicas; None if these cannot be assigned."""
    replicas, fault = fields.shared(ids)
    return ReplicaAssignment(replicas) if replicas and not fault else None
