"""Publications that are made together reach each broker as if it had been told one thing after the other."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from attrs import evolve
from hypothesis import example, given, strategies as st
from msgspec.structs import replace

from controller.channels.addressing import addressed
from controller.channels.backlog import BrokerBacklog
from controller.channels.blocks import States, key_of_stop
from controller.model.rounds import (
    Publication,
    TellLeaderAndIsr,
    TellMetadata,
    TellStopReplica,
)
from tests.kit.told import add_singly, tell_order, tell_stop
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrRequest,
    PartitionState,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import LEADER_DURING_DELETE

CONTROLLER = BrokerEndpoint(1001, "127.0.0.1", 1)
EVERYONE = (1, 2)
UNKNOWN = 3
STATE = PartitionState("orders", "id-1", 0, 1, 1, 1, (1, 2), 1, (1, 2))
DELETED = replace(STATE, leader=LEADER_DURING_DELETE)


def backlog() -> BrokerBacklog:
    return BrokerBacklog(CONTROLLER, 1, 77)


def parts(publication: Publication) -> Iterable[tuple[tuple[int, ...] | None, Publication]]:
    """Return what is told of each partition, with the brokers that are told it."""
    if isinstance(publication, TellMetadata):
        lists = evolve(publication, partitions=())
        alone = (lists, *(TellMetadata(publication.brokers, (state,)) for state in publication.partitions))
        return [(one.brokers, one) for one in alone]
    if isinstance(publication, TellLeaderAndIsr):
        rows = zip(publication.recipients, publication.states, strict=True)
        return [(to, tell_order(to, state, is_new=publication.is_new)) for to, state in rows]
    return [(to, tell_stop(to, one)) for to, one in zip(publication.recipients, publication.partitions, strict=True)]


def drained(waiting: BrokerBacklog) -> list[Request[object]]:
    requests = []
    while (request := waiting.take()) is not None:
        requests.append(request)
    return requests


def in_order(requests: Iterable[Request[object]]) -> list[Request[object]]:
    """Sort the stops within each request by partition: only those of one partition have an order."""
    return [
        replace(request, partitions=tuple(sorted(request.partitions, key=key_of_stop)))
        if isinstance(request, StopReplicaRequest)
        else request
        for request in requests
    ]


recipients = st.lists(st.sampled_from((*EVERYONE, UNKNOWN)), unique=True, max_size=3).map(tuple)
states = st.builds(
    lambda topic_id, number, epoch, leader: replace(
        STATE, topic_id=topic_id, partition=number, leader_epoch=epoch, leader=leader
    ),
    st.sampled_from(["id-1", "id-2"]),
    st.integers(0, 2),
    st.integers(0, 3),
    st.sampled_from([1, LEADER_DURING_DELETE]),
)
stops = st.builds(
    lambda state, epoch, delete: StopReplicaPartition(state.topic, state.topic_id, state.partition, epoch, delete),
    states,
    st.integers(0, 3),
    st.booleans(),
)
news = st.builds(
    TellMetadata,
    st.none() | recipients,
    st.lists(states, max_size=3).map(tuple),
    st.sampled_from([None, None, (CONTROLLER,)]),
    st.sampled_from([None, None, (("orders", "id-2"),), ()]),
)
orders = st.builds(
    lambda rows, is_new: TellLeaderAndIsr([to for to, _ in rows], [state for _, state in rows], is_new),
    st.lists(st.tuples(recipients, states), max_size=4),
    st.booleans(),
)
many_stops = st.builds(
    lambda rows: TellStopReplica([to for to, _ in rows], [stop for _, stop in rows]),
    st.lists(st.tuples(recipients, stops), max_size=4),
)
told = st.one_of(orders, many_stops, news)


def without_returns(published: Iterable[Publication]) -> list[Publication]:
    """Leave out metadata that no controller sends: states of a topic after its deletion, or after one of its name."""
    last: dict[int, tuple[str, bool]] = {}
    kept: list[Publication] = []
    for publication in published:
        if not isinstance(publication, TellMetadata):
            kept.append(publication)
            continue
        rows = []
        for state in publication.partitions:
            stage = state.topic_id, state.leader == LEADER_DURING_DELETE
            if stage >= last.get(state.partition, stage):
                last[state.partition] = stage
                rows.append(state)
        kept.append(evolve(publication, partitions=tuple(rows)))
    return kept


publications = st.lists(told, max_size=20).map(without_returns)


def stop_of(partition: int, *, delete: bool) -> TellStopReplica:
    return tell_stop((1,), StopReplicaPartition(STATE.topic, STATE.topic_id, partition, 0, delete))


def order_of(partition: int) -> TellLeaderAndIsr:
    return tell_order((1,), replace(STATE, partition=partition))


@given(publications)
@example([TellMetadata(None, (STATE,)), TellMetadata(None, (DELETED, replace(STATE, topic_id="id-2")))])
@example(
    [*(stop_of(number, delete=delete) for number, delete in ((0, False), (1, True), (0, True))), *map(order_of, (1, 0))]
)
def test_each_broker_is_sent_what_it_would_be_sent_one_by_one(published: list[Publication]) -> None:
    together = addressed(published, EVERYONE)
    assert together.keys() <= set(EVERYONE)
    for broker_id in EVERYONE:
        joined, one_by_one = backlog(), backlog()
        for told in together.get(broker_id, ()):
            joined.add(told)
        for brokers, publication in chain.from_iterable(map(parts, published)):
            if brokers is None or broker_id in brokers:
                add_singly(one_by_one, publication)
        assert in_order(drained(joined)) == in_order(drained(one_by_one))


def test_brokers_share_the_metadata_that_all_are_told() -> None:
    told = [TellMetadata(None, (replace(STATE, partition=number),)) for number in range(5)]
    one, two = (items for _, items in addressed(told, EVERYONE).items())
    assert one == two
    [shared] = one
    assert isinstance(shared, States)
    requests = []
    for _ in EVERYONE:
        waiting = backlog()
        waiting.add(shared)
        requests += drained(waiting)
    [first, second] = requests
    assert isinstance(first, UpdateMetadataRequest)
    assert isinstance(second, UpdateMetadataRequest)
    assert first.partitions is second.partitions


def test_a_large_round_is_cut_into_requests_of_the_largest_size() -> None:
    told = [tell_order((1,), replace(STATE, partition=number)) for number in range(25_000)]
    waiting = backlog()
    for each in addressed(told, EVERYONE)[1]:
        waiting.add(each)
    requests = drained(waiting)
    assert [len(each.partitions) for each in requests if isinstance(each, LeaderAndIsrRequest)] == [
        10_000,
        10_000,
        5_000,
    ]
