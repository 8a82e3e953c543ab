"""Partition states that are packed by hand have the bytes that the codec would give them."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given, strategies as st

from transport.kafka import messages as kafka
from transport.kafka.codec import Packed, encode
from transport.kafka.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrTopicState
from transport.kafka.messages.stop_replica_request import StopReplicaPartitionState, StopReplicaTopicState
from transport.kafka.messages.update_metadata_request import UpdateMetadataPartitionState, UpdateMetadataTopicState
from transport.kafka.orders import LEAST_VERSIONS
from transport.kafka.packed_states import packed_metadata, packed_orders, packed_stops
from transport.kafka.schema import Message
from transport.messages import LeaderAndIsrPartition, PartitionState, StopReplicaPartition
from transport.messages.shared import CommonRows, SharedRows
from transport.wire import CodecError

HAS_RECOVERY_STATE = 6

numbers = st.integers(-(2**31), 2**31 - 1)
ids = st.lists(numbers, max_size=4).map(tuple)
# With an array of more than 126 elements, its length takes two bytes.
lists_of_ids = st.one_of(ids, st.just(tuple(range(200))))
topics = st.tuples(
    st.sampled_from(["orders", "ä" * 200]), st.binary(min_size=16, max_size=16).map(urlsafe_b64encode)
).map(lambda topic: (topic[0], topic[1].decode().rstrip("=")))


@st.composite
def partition_states(draw: st.DrawFn) -> PartitionState:
    name, topic_id = draw(topics)
    number, controller_epoch, leader, leader_epoch, partition_epoch = (draw(numbers) for _ in range(5))
    isr, replicas, adding, removing, offline = (draw(lists_of_ids) for _ in range(5))
    return PartitionState(
        name,
        topic_id,
        number,
        controller_epoch,
        leader,
        leader_epoch,
        isr,
        partition_epoch,
        replicas,
        adding,
        removing,
        draw(st.integers(0, 1)),
        offline,
    )


def versions_of(kind: type[Message]) -> range:
    return range(LEAST_VERSIONS[kind], kind.versions.last + 1)


def as_packed_by_the_codec(order: LeaderAndIsrPartition, version: int) -> LeaderAndIsrPartitionState:
    state = order.state
    return LeaderAndIsrPartitionState(
        partition_index=state.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
        is_new=order.is_new,
        leader_recovery_state=state.leader_recovery_state if version >= HAS_RECOVERY_STATE else 0,
    )


def metadata_of(state: PartitionState) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=state.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.partition_epoch,
        replicas=state.replicas,
        offline_replicas=state.offline_replicas,
    )


def grouped(states: list[PartitionState], entries: list[Any]) -> dict[tuple[str, str], tuple[Any, ...]]:
    groups: dict[tuple[str, str], tuple[Any, ...]] = {}
    for state, entry in zip(states, entries, strict=True):
        key = state.topic, state.topic_id
        groups[key] = (*groups.get(key, ()), entry)
    return groups


@given(st.lists(st.builds(LeaderAndIsrPartition, partition_states(), st.booleans()), max_size=4))
@pytest.mark.parametrize("version", versions_of(kafka.LeaderAndIsrRequest))
def test_orders(version: int, orders: list[LeaderAndIsrPartition]) -> None:
    packed: Any = packed_orders(orders, version)
    entries = [as_packed_by_the_codec(order, version) for order in orders]
    topics = grouped([order.state for order in orders], entries)
    expected = tuple(LeaderAndIsrTopicState(*topic, of) for topic, of in topics.items())
    message = kafka.LeaderAndIsrRequest
    assert encode(message(topic_states=packed), version) == encode(message(topic_states=expected), version)


@given(st.lists(partition_states(), max_size=4))
@pytest.mark.parametrize("version", versions_of(kafka.UpdateMetadataRequest))
def test_metadata(version: int, states: list[PartitionState]) -> None:
    packed: Any = packed_metadata(states, version)
    topics = grouped(states, list(map(metadata_of, states)))
    expected = tuple(UpdateMetadataTopicState(*topic, of) for topic, of in topics.items())
    message = kafka.UpdateMetadataRequest
    assert encode(message(topic_states=packed), version) == encode(message(topic_states=expected), version)


@given(
    st.lists(
        st.builds(
            StopReplicaPartition, st.sampled_from(["orders", "ä" * 200]), st.just("id"), numbers, numbers, st.booleans()
        ),
        max_size=4,
    )
)
@pytest.mark.parametrize("version", [3, 4])
def test_stops(version: int, stops: list[StopReplicaPartition]) -> None:
    packed: Any = packed_stops(stops)
    topics: dict[str, tuple[StopReplicaPartitionState, ...]] = {}
    for stop in stops:
        entry = StopReplicaPartitionState(stop.partition, stop.leader_epoch, stop.delete)
        topics[stop.topic] = (*topics.get(stop.topic, ()), entry)
    expected = tuple(StopReplicaTopicState(*topic) for topic in topics.items())
    message = kafka.StopReplicaRequest
    assert encode(message(topic_states=packed), version) == encode(message(topic_states=expected), version)


ID = "AAAAAAAAAAAAAAAAAAAAAQ"
STATES = [PartitionState("orders", ID, number, 3, 2, 4, (2, 1), 5, (1, 2)) for number in range(6)]
ORDERS = [LeaderAndIsrPartition(state, is_new=False) for state in STATES]


def test_metadata_for_many_brokers_is_packed_once_for_each_version() -> None:
    shared = SharedRows(STATES)
    assert packed_metadata(shared, 7) is packed_metadata(shared, 7)
    assert packed_metadata(shared, 6) == packed_metadata(STATES, 6) != packed_metadata(shared, 7)


def test_orders_of_many_brokers_have_the_bytes_of_each_row() -> None:
    common = CommonRows(list(ORDERS))
    one, two = common.select([0, 1, 4]), common.select([4, 5])
    for version in versions_of(kafka.LeaderAndIsrRequest):
        assert packed_orders(one, version) == packed_orders([ORDERS[0], ORDERS[1], ORDERS[4]], version)
        assert packed_orders(two, version) == packed_orders(ORDERS[4:], version)
        assert packed_orders(SharedRows.joined([two, (ORDERS[2],)]), version) == packed_orders(
            [*ORDERS[4:], ORDERS[2]], version
        )


def test_joined_metadata_has_the_bytes_of_its_rows() -> None:
    joined = SharedRows.joined([SharedRows(STATES[:2]), tuple(STATES[3:])])
    assert packed_metadata(joined, 8) == packed_metadata([*STATES[:2], *STATES[3:]], 8)


@pytest.mark.parametrize("fault", [{"leader": 2**31}, {"isr": None}, {"isr": (2**31,)}, {"topic_id": "no-id"}])
def test_what_kafkas_protocol_cannot_express_is_refused(fault: dict[str, Any]) -> None:
    known: dict[str, Any] = {"topic_id": ID, "leader": 1, "isr": (1,)} | fault
    state = PartitionState("orders", known["topic_id"], 0, 3, known["leader"], 4, known["isr"], 5, (1,))
    with pytest.raises(CodecError):
        packed_metadata([state], 8)
    with pytest.raises(CodecError):
        packed_orders([LeaderAndIsrPartition(state, is_new=False)], 7)


def test_arrays_may_be_packed_already() -> None:
    topics: Any = Packed(b"\x01")
    version = kafka.UpdateMetadataRequest.versions.last
    empty = encode(kafka.UpdateMetadataRequest(topic_states=()), version)
    assert encode(kafka.UpdateMetadataRequest(topic_states=topics), version) == empty
