"""Check that brokers are sent only durable states, past or present, and one leader per leader epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import define, field

from simulator.safety.exemptions import Exemptions
from simulator.safety.partitions import PartitionChange
from transport.messages import LeaderAndIsrRequest, PartitionState, StopReplicaRequest, UpdateMetadataRequest
from transport.metadata import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, NO_LEADER, TopicPartition

_REMEMBERED: Final = 64
"""Number of states remembered for each partition; an order with an older state cannot be checked."""

_Key = tuple[TopicPartition, str]
"""A partition of the topic with this id."""

_State = tuple[int, int, tuple[int, ...]]
"""Leader epoch, leader and ISR."""


_Order = tuple[int, int, int]
"""The place of an order to a broker among all: controller epoch, broker epoch, number."""


@define
class Orders:
    """The latest states of each partition by partition epoch, and the leader that brokers were told for each epoch."""

    exempt: Exemptions
    _states: dict[_Key, dict[int, _State]] = field(factory=dict, init=False)
    _leaders: dict[_Key, dict[int, int]] = field(factory=dict, init=False)
    _deleting: dict[tuple[int, TopicPartition, str], _Order] = field(factory=dict, init=False)
    """The last order to a broker to delete a replica together with its topic."""

    def changed(self, change: PartitionChange) -> None:
        """Record a committed state."""
        after = change.after
        if after is None or after.leadership is None:
            return
        states, new = self._states.setdefault((change.tp, after.topic_id), {}), after.leadership
        if states and new.partition_epoch < max(states):
            states.clear()  # an operator created the znode again
        states[new.partition_epoch] = (new.leader_epoch, new.leader, new.isr)
        _forget_oldest(states)

    def stopped(self, broker_id: int, request: StopReplicaRequest) -> None:
        """Record the replicas that a broker is ordered to delete together with their topic."""
        for item in request.partitions:
            if item.delete and item.leader_epoch == EPOCH_DURING_DELETE:
                self._deleting[broker_id, item.tp, item.topic_id] = _place(request)

    def ordered(self, broker_id: int, request: LeaderAndIsrRequest | UpdateMetadataRequest) -> Iterator[str]:
        """Check the states that a broker is sent."""
        states = [state for state in _states_in(request) if not self.exempt.is_unreadable(state.topic)]
        if isinstance(request, LeaderAndIsrRequest):
            yield from self._judge_revivals(broker_id, states, request)
        for state in states:
            if state.leader != LEADER_DURING_DELETE:
                yield from self._judge(broker_id, state)
                yield from self._judge_leader(broker_id, state)

    def _judge_revivals(
        self, broker_id: int, states: Sequence[PartitionState], request: LeaderAndIsrRequest
    ) -> Iterator[str]:
        """Check that a controller never orders a broker to hold a replica that it told it to delete with its topic.

        An order that was sent before it may arrive late, on a connection that the controller has abandoned.
        """
        for state in states:
            tp = state.tp
            deletion = self._deleting.get((broker_id, tp, state.topic_id))
            if deletion is not None and deletion[0] == request.controller_epoch and deletion <= _place(request):
                yield f"broker {broker_id} was told {_text(_of(state))} of {tp}, which it was told to delete"

    def _judge(self, broker_id: int, told: PartitionState) -> Iterator[str]:
        tp = told.tp
        states = self._states.get((tp, told.topic_id), {})
        # The state is older than those remembered.
        if states and told.partition_epoch < min(states):
            return
        state = _of(told)
        durable = states.get(told.partition_epoch)
        if durable != state:
            where = f"partition epoch {told.partition_epoch}"
            yield f"broker {broker_id} was told {_text(state)} of {tp} at {where}, where {_text(durable)} is durable"

    def _judge_leader(self, broker_id: int, told: PartitionState) -> Iterator[str]:
        if told.leader == NO_LEADER:
            return
        tp = told.tp
        leaders = self._leaders.setdefault((tp, told.topic_id), {})
        other = leaders.setdefault(told.leader_epoch, told.leader)
        _forget_oldest(leaders)
        if other != told.leader:
            epoch = told.leader_epoch
            yield f"broker {broker_id} was told that {told.leader} leads {tp}, but {other} leads it in epoch {epoch}"


def _place(request: LeaderAndIsrRequest | StopReplicaRequest) -> _Order:
    return request.controller_epoch, request.broker_epoch, request.number


def _of(told: PartitionState) -> _State:
    return told.leader_epoch, told.leader, told.isr


def _states_in(request: LeaderAndIsrRequest | UpdateMetadataRequest) -> Iterable[PartitionState]:
    if isinstance(request, UpdateMetadataRequest):
        return request.partitions
    return (partition.state for partition in request.partitions)


def _forget_oldest(by_epoch: dict[int, _State] | dict[int, int]) -> None:
    if len(by_epoch) > _REMEMBERED:
        by_epoch.pop(min(by_epoch))


def _text(state: _State | None) -> str:
    return "nothing" if state is None else f"leader epoch {state[0]}, leader {state[1]}, ISR {state[2]}"
