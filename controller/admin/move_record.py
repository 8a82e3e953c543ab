"""The state before the moves of a plan, for clusters that do not keep it themselves. Pure.

Kafka forgets the order of the replicas that a move replaces, and who has named a throttled replica. The record is made
before anything is changed, by what the cluster shows then; an earlier record of the same plan counts where the moves
of that one are under way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import field, frozen

from transport.messages import PartitionState
from transport.metadata import TopicPartition

Pairs = frozenset[tuple[int, int]]
"""Replicas of a topic: a partition's number and a broker's id."""

Orders = Mapping[TopicPartition, tuple[int, ...]]


@frozen
class ListBefore:
    """A topic's list of throttled replicas before the moves, None if it had none, and what was added for them."""

    before: str | None
    added: Pairs


@frozen
class RateBefore:
    """A broker's rate before the moves, None if it had none, and the one that they got."""

    before: str | None
    given: str


@frozen
class MoveRecord:
    """The replicas of partitions before their moves, and the settings that throttle them.

    `lists` are by topic and name of the setting, `rates` by broker and name of the setting.
    """

    replicas: Orders = field(factory=dict)
    lists: Mapping[tuple[str, str], ListBefore] = field(factory=dict)
    rates: Mapping[tuple[int, str], RateBefore] = field(factory=dict)

    def added(self, topic: str, name: str) -> Pairs:
        """Return the replicas that were added to a list for the moves."""
        found = self.lists.get((topic, name))
        return frozenset() if found is None else found.added

    @property
    def throttles(self) -> bool:
        """Whether the moves have changed settings that throttle."""
        return bool(self.lists or self.rates)


def replicas_before(states: Mapping[TopicPartition, PartitionState], targets: Orders, earlier: Orders) -> Orders:
    """Return the replicas of each partition before its move, in their order."""
    return {tp: _before(states[tp], target, earlier.get(tp)) for tp, target in targets.items()}


def _before(state: PartitionState, target: tuple[int, ...], earlier: tuple[int, ...] | None) -> tuple[int, ...]:
    origin = state.origin_replicas
    if earlier is None:
        return origin
    is_begun = state.is_being_reassigned or state.replicas == target
    return earlier if is_begun or set(earlier) == set(origin) else origin


def out_of_order(states: Iterable[PartitionState], orders: Orders) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the partitions that have the replicas of `orders` in another order, and that order."""
    still = [state for state in states if state.tp in orders and not state.is_being_reassigned]
    return {
        state.tp: orders[state.tp]
        for state in still
        if state.replicas != orders[state.tp] and sorted(state.replicas) == sorted(orders[state.tp])
    }


def pairs_of(pairs: Iterable[tuple[int, int]], topic: str, partitions: Collection[TopicPartition]) -> Pairs:
    """Return the replicas that are of these partitions."""
    return frozenset(pair for pair in pairs if TopicPartition(topic, pair[0]) in partitions)
