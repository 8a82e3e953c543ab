"""The orders of many partitions together are those of each alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hypothesis import given, strategies as st

from controller.handlers.brokers import orders_of_all
from controller.model.context import ControllerContext
from controller.model.facts import TopicWritten
from controller.model.rounds import Publication
from tests.kit.told import Order, singly
from transport.messages import BrokerEndpoint, PartitionState
from transport.metadata import LeaderAndIsr, ReplicaAssignment
from transport.store.formats import TopicZnode

IDS = range(1, 5)
ISRS = st.lists(st.sampled_from(IDS), unique=True).map(tuple)


@st.composite
def assignments(draw: st.DrawFn) -> ReplicaAssignment:
    replicas = tuple(draw(st.lists(st.sampled_from(IDS), unique=True, min_size=1, max_size=4)))
    return ReplicaAssignment(replicas, replicas[: draw(st.integers(0, len(replicas) - 1))])


def orders_in(told: Iterable[Publication]) -> Iterator[Order]:
    """Yield what is told of each partition to some broker."""
    for item in told:
        yield from (one for one in singly(item) if isinstance(one, Order) and one.brokers)


@given(
    st.lists(st.tuples(assignments(), ISRS), max_size=8), st.sets(st.sampled_from(IDS)), st.sets(st.sampled_from(IDS))
)
def test_orders_of_many_partitions_are_those_of_each(
    partitions: list[tuple[ReplicaAssignment, tuple[int, ...]]], ids: set[int], empty: set[int]
) -> None:
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), epoch=1, epoch_version=1)
    assigned = {number: assignment for number, (assignment, _) in enumerate(partitions)}
    context.apply(TopicWritten("orders", TopicZnode(assigned, "id"), 0))
    states = [
        PartitionState.of(tp, "id", assignment, LeaderAndIsr(1, 0, isr, 0, 1))
        for tp, (assignment, isr) in zip(context.partitions(), partitions, strict=True)
    ]
    for none_or_some in (set[int](), empty):
        told = list(orders_in(orders_of_all(context, states, ids, none_or_some)))
        alone = [order for state in states for order in orders(state, ids, none_or_some)]
        assert sorted(told, key=_place) == sorted(alone, key=_place)


def orders(state: PartitionState, ids: set[int], empty: set[int]) -> Iterator[Order]:
    """Yield the orders about a partition."""
    here = [r for r in state.replicas if r in ids]
    new = tuple(r for r in here if r in empty or (r in state.adding_replicas and r not in state.isr))
    kept = tuple(r for r in here if r not in new)
    yield from (Order(of, state, is_new) for of, is_new in ((kept, False), (new, True)) if of)


def _place(order: Order) -> tuple[int, bool]:
    return order.state.partition, order.is_new
