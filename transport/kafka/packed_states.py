"""Partition states in the bytes of Kafka's LeaderAndIsr and UpdateMetadata, and replicas in those of its StopReplica.

A controller may send hundreds of thousands of them at once. So they are not made into entities for the codec, which
takes ten times as long, but packed here, in those versions that Klamm sends. All of these are flexible (KIP-482).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from struct import Struct, error as struct_error
from typing import Final

from transport.kafka.codec import Packed
from transport.kafka.primitives import pack_string, pack_uuid, pack_varint
from transport.messages import LeaderAndIsrPartition, PartitionState, StopReplicaPartition
from transport.messages.shared import SharedRows
from transport.wire.errors import CodecError

_FAULTS: Final = struct_error, AttributeError, TypeError
_NO_TAGS: Final = b"\0"
_NO_MOVE: Final = b"\x01\x01"
"""Two empty arrays."""

_HEAD: Final = Struct(">iiii")
_INT: Final = Struct(">i")
_FLAGS: Final = Struct(">?b")
_FLAG: Final = Struct(">?")
_STOP: Final = Struct(">ii?x")
"""The last byte is that of no tags."""

_ORDERS_HAVE_TOPIC_IDS: Final = 5
_ORDERS_HAVE_RECOVERY_STATE: Final = 6
_METADATA_HAS_TOPIC_IDS: Final = 7

_Topic = tuple[str, str]
"""Name and id."""


def packed_orders(orders: Sequence[LeaderAndIsrPartition], version: int) -> Packed:
    """Return the topics of a LeaderAndIsr. Raises CodecError."""
    pack = partial(_order, has_recovery_state=version >= _ORDERS_HAVE_RECOVERY_STATE)
    try:
        form = packed_orders, version
        rows = orders.pieces(form, pack) if isinstance(orders, SharedRows) else map(pack, orders)
        topics = _by_topic([order.state for order in orders], rows)
        return _topics(topics, has_ids=version >= _ORDERS_HAVE_TOPIC_IDS)
    except _FAULTS as error:
        raise CodecError(f"LeaderAndIsr cannot be encoded in version {version}: {error}") from error


def packed_metadata(states: Sequence[PartitionState], version: int) -> Packed:
    """Return the topics of an UpdateMetadata. Raises CodecError."""
    if not isinstance(states, SharedRows):
        return _packed_metadata(states, map(_metadata, states), version)

    def pack(rows: SharedRows[PartitionState]) -> Packed:
        pieces = rows.pieces(_metadata, _metadata) if rows.has_pieces else map(_metadata, rows)
        return _packed_metadata(rows, pieces, version)

    return states.whole((packed_metadata, version), pack)


def packed_stops(stops: Sequence[StopReplicaPartition]) -> Packed:
    """Return the topics of a StopReplica, from version 3 on. Raises CodecError."""
    try:
        rows = stops.pieces(_stop, _stop) if isinstance(stops, SharedRows) else map(_stop, stops)
        return _topics(_by_topic(stops, rows), has_ids=False)
    except _FAULTS as error:
        raise CodecError(f"StopReplica cannot be encoded: {error}") from error


def _packed_metadata(states: Sequence[PartitionState], rows: Iterable[bytes], version: int) -> Packed:
    try:
        return _topics(_by_topic(states, rows), has_ids=version >= _METADATA_HAS_TOPIC_IDS)
    except _FAULTS as error:
        raise CodecError(f"UpdateMetadata cannot be encoded in version {version}: {error}") from error


def _order(order: LeaderAndIsrPartition, *, has_recovery_state: bool) -> bytes:
    state, is_new = order.state, order.is_new
    is_moving = state.adding_replicas or state.removing_replicas
    return b"".join(
        (
            _HEAD.pack(state.partition, state.controller_epoch, state.leader, state.leader_epoch),
            _ids(state.isr),
            _INT.pack(state.partition_epoch),
            _ids(state.replicas),
            _ids(state.adding_replicas) + _ids(state.removing_replicas) if is_moving else _NO_MOVE,
            _FLAGS.pack(is_new, state.leader_recovery_state) if has_recovery_state else _FLAG.pack(is_new),
            _NO_TAGS,
        )
    )


def _metadata(state: PartitionState) -> bytes:
    return b"".join(
        (
            _HEAD.pack(state.partition, state.controller_epoch, state.leader, state.leader_epoch),
            _ids(state.isr),
            _INT.pack(state.partition_epoch),
            _ids(state.replicas),
            _ids(state.offline_replicas),
            _NO_TAGS,
        )
    )


def _stop(stop: StopReplicaPartition) -> bytes:
    return _STOP.pack(stop.partition, stop.leader_epoch, stop.delete)


@lru_cache(10_000)
def _ids(ids: tuple[int, ...]) -> bytes:
    """Return an array of ids. Equal ones are common, and are packed once."""
    return pack_varint(len(ids) + 1) + Struct(f">{len(ids)}i").pack(*ids)


def _by_topic(
    states: Iterable[PartitionState | StopReplicaPartition], rows: Iterable[bytes]
) -> dict[_Topic, list[bytes]]:
    """Return the rows of each topic, which a request names once."""
    topics: dict[_Topic, list[bytes]] = {}
    name = topic_id = None
    of: list[bytes] = []
    for state, row in zip(states, rows, strict=True):
        # Most follow another one of their topic.
        if state.topic != name or state.topic_id != topic_id:
            name, topic_id = state.topic, state.topic_id
            of = topics.setdefault((name, topic_id), [])
        of.append(row)
    return topics


def _topics(topics: dict[_Topic, list[bytes]], *, has_ids: bool) -> Packed:
    parts = [pack_varint(len(topics) + 1)]
    for (name, topic_id), rows in topics.items():
        parts += (_begin(name, topic_id if has_ids else None), pack_varint(len(rows) + 1), *rows, _NO_TAGS)
    return Packed(b"".join(parts))


@lru_cache(10_000)
def _begin(name: str, topic_id: str | None) -> bytes:
    packed_name = pack_string(name, is_compact=True)
    return packed_name if topic_id is None else packed_name + pack_uuid(topic_id)
