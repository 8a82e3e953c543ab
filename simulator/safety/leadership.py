"""Leaders, ISRs and replica sets: what a commit may make of them, whoever decided it and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import define, field

from simulator.safety.partitions import Partition, PartitionChange
from transport.messages import AlterPartitionRequest
from transport.metadata import NO_LEADER, LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment, TopicPartition

_REMEMBERED: Final = 16
"""How many proposals of a partition are remembered."""

_Proposal = tuple[int, int, tuple[int, ...]]
"""Leader epoch and partition epoch that a proposal builds on, and the ISR that it asks for."""


@define
class Leaderships:
    """Judges the leaderships that controllers write.

    It knows what leaders asked for: an ISR that changes without a new leader epoch must be one of these (KIP-497).
    """

    _proposals: dict[TopicPartition, dict[_Proposal, None]] = field(factory=dict, init=False)
    _by_hand: dict[TopicPartition, None] = field(factory=dict, init=False)
    """The partitions that an operator wrote last."""

    def asked(self, request: AlterPartitionRequest) -> None:
        """Take note of the ISRs that a leader asks a controller for."""
        for item in request.partitions:
            proposals = self._proposals.setdefault(item.tp, {})
            proposals[item.leader_epoch, item.partition_epoch, item.new_isr] = None
            if len(proposals) > _REMEMBERED:
                del proposals[next(iter(proposals))]

    def changed(self, change: PartitionChange) -> Iterator[str]:
        """Judge a controller's change of a partition."""
        before, after = change.before, change.after
        if not change.is_a_controllers:
            self._by_hand[change.tp] = None
            return
        was_by_hand = change.tp in self._by_hand
        self._by_hand.pop(change.tp, None)
        if after is None:
            return
        if after.leadership is not None:
            yield from _shape(change.tp, after.leadership, after.assignment)
        if before is None or not change.is_of_one_topic:
            return
        if before.leadership is not None and after.leadership is not None:
            yield from self._succession(change.tp, before.leadership, after.leadership)
        if before.assignment.is_being_reassigned and not after.assignment.is_being_reassigned:
            yield from _end_of_move(change.tp, before.assignment, after)
        # What somebody wrote by hand is written back, whatever it was.
        if not was_by_hand and not before.assignment.is_being_reassigned:
            yield from _outside_of_moves(change.tp, before.assignment, after.assignment)

    def _succession(self, tp: TopicPartition, before: LeaderAndIsr, after: LeaderAndIsr) -> Iterator[str]:
        if after.controller_epoch < before.controller_epoch:
            yield f"{tp}: controller epoch {before.controller_epoch} was followed by {after.controller_epoch}"
        if after.leader_epoch not in (before.leader_epoch, before.leader_epoch + 1):
            yield f"{tp}: leader epoch {before.leader_epoch} was followed by {after.leader_epoch}"
        elif after.leader_epoch > before.leader_epoch:
            yield from _new_epoch(tp, before, after)
        elif after.leader != before.leader:
            yield f"{tp}: leader {before.leader} was followed by {after.leader} in leader epoch {after.leader_epoch}"
        elif after.isr != before.isr:
            proposal = (before.leader_epoch, before.partition_epoch, after.isr)
            if proposal not in self._proposals.get(tp, {}):
                epoch = after.leader_epoch
                yield f"{tp}: ISR {before.isr} became {after.isr} in leader epoch {epoch}, unasked by the leader"


def _shape(tp: TopicPartition, leadership: LeaderAndIsr, assignment: ReplicaAssignment) -> Iterator[str]:
    leader, isr = leadership.leader, leadership.isr
    if leader != NO_LEADER and leader not in isr:
        yield f"{tp}: leader {leader} is not in the ISR {isr}"
    if not set(isr) <= set(assignment.replicas):
        yield f"{tp}: ISR {isr} is not within the replicas {assignment.replicas}"
    if len(set(isr)) != len(isr):
        yield f"{tp}: ISR {isr} names a broker twice"


def _new_epoch(tp: TopicPartition, before: LeaderAndIsr, after: LeaderAndIsr) -> Iterator[str]:
    """Judge what a controller decided on its own: nobody comes into an ISR by that but by an unclean election."""
    strangers = tuple(r for r in after.isr if r not in before.isr)
    if strangers and not is_unclean(before, after):
        yield f"{tp}: {strangers} came into the ISR {after.isr} with leader epoch {after.leader_epoch}"


def is_unclean(before: LeaderAndIsr, after: LeaderAndIsr) -> bool:
    """Whether an election from outside the ISR took place, and is reported as that (KIP-704)."""
    is_reported = after.leader_recovery_state is LeaderRecoveryState.RECOVERING
    is_alone = after.isr == (after.leader,) and after.leader not in before.isr
    return is_reported and is_alone and after.leader_epoch > before.leader_epoch


def _outside_of_moves(tp: TopicPartition, before: ReplicaAssignment, after: ReplicaAssignment) -> Iterator[str]:
    """Judge what a controller makes of replicas that do not move: a move from there, or another order of the same."""
    if sorted(after.origin_replicas) != sorted(before.replicas):
        yield f"{tp}: replicas {before.replicas} became {after.origin_replicas} without a move"


def _end_of_move(tp: TopicPartition, moving: ReplicaAssignment, after: Partition) -> Iterator[str]:
    replicas, isr = after.assignment.replicas, () if after.leadership is None else after.leadership.isr
    if set(replicas) == set(moving.target_replicas):
        if not set(replicas) <= set(isr):
            yield f"{tp}: its move to {replicas} ended with the ISR {isr}"
        if after.leadership is None or after.leadership.leader not in replicas:
            yield f"{tp}: its move to {replicas} ended without a leader"
    elif set(replicas) != set(moving.origin_replicas):
        yield f"{tp}: its move from {moving.origin_replicas} to {moving.target_replicas} ended at {replicas}"
