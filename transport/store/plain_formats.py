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
    LeaderRecoveryState,
    ReplicaAssignment,
    is_topic_id,
    number_in,
)
from transport.store import fields

_CACHED: Final = 1 << 16

_Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
_Brokers = tuple[int, ...]


class _State(Struct, forbid_unknown_fields=True, gc=False):
    controller_epoch: _Number
    leader: Annotated[int, Meta(ge=NO_LEADER, le=MAX_NUMBER)]
    leader_epoch: Annotated[int, Meta(ge=0, le=MAX_RISING_EPOCH)]
    isr: _Brokers
    version: _Number = 1
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


class _Topic(Struct, forbid_unknown_fields=True, gc=False):
    partitions: dict[str, _Brokers]
    topic_id: str
    adding_replicas: dict[str, _Brokers] = {}
    removing_replicas: dict[str, _Brokers] = {}
    version: _Number = 1


_decode_state: Final = msgspec.json.Decoder(_State).decode
_decode_topic: Final = msgspec.json.Decoder(_Topic).decode


def partition_state(data: bytes, version: int) -> LeaderAndIsr | None:
    """Return the state of a partition; `version` is the dataVersion of its znode."""
    try:
        state = _decode_state(data)
    except msgspec.DecodeError:
        return None
    isr, fault = fields.shared(state.isr)
    recovery = state.leader_recovery_state
    decoded = LeaderAndIsr(state.leader, state.leader_epoch, isr, version, state.controller_epoch, recovery)
    return None if fault else decoded


def topic(data: bytes) -> tuple[dict[int, ReplicaAssignment], str] | None:
    """Return the assignment and the id of a topic none of whose partitions is being reassigned."""
    try:
        found = _decode_topic(data)
    except msgspec.DecodeError:
        return None
    if found.adding_replicas or found.removing_replicas or not is_topic_id(found.topic_id):
        return None
    assigned = zip(map(_number, found.partitions), map(_assignment, found.partitions.values()), strict=True)
    partitions = {number: each for number, each in assigned if number is not None and each is not None}
    is_complete = len(partitions) == len(found.partitions)
    return (dict(sorted(partitions.items())), found.topic_id) if is_complete else None


_number: Final = lru_cache(_CACHED)(number_in)


@lru_cache(_CACHED)
def _assignment(ids: tuple[int, ...]) -> ReplicaAssignment | None:
    """Return one assignment for equal lists of replicas; None if these cannot be assigned."""
    replicas, fault = fields.shared(ids)
    return ReplicaAssignment(replicas) if replicas and not fault else None
