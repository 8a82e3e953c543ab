"""Check the changes of leaders, ISRs and replica sets that a commit may make, whatever the reason for them."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field, frozen

from simulator.safety.partitions import Partition, PartitionChange
from transport.messages import AlterPartitionRequest
from transport.metadata import NO_LEADER, LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment, TopicPartition


@frozen
class IsrProposal:
    """An ISR that a leader has proposed, with the epochs that it is based on."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


@define
class Leaderships:
    """Checks the leaderships that controllers write.

    It records the ISRs that leaders propose: one that changes without a new leader epoch must be among them (KIP-497).
    """

    _proposals: dict[TopicPartition, dict[IsrProposal, None]] = field(factory=dict, init=False)
    _by_hand: dict[TopicPartition, None] = field(factory=dict, init=False)
    """The partitions whose last change was made by an operator."""

    def asked(self, request: AlterPartitionRequest) -> None:
        """Record the ISRs that a leader proposes to a controller."""
        for item in request.partitions:
            proposals = self._proposals.setdefault(item.tp, {})
            proposals[IsrProposal(request.broker_id, item.leader_epoch, item.partition_epoch, item.new_isr)] = None

    def proposed(self, tp: TopicPartition) -> tuple[IsrProposal, ...]:
        """Return the proposals for a partition, each once, in the order in which they came."""
        return tuple(self._proposals.get(tp, ()))

    def changed(self, change: PartitionChange) -> Iterator[str]:
        """Check a controller's change of a partition."""
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
        # After an edit by hand a controller writes its own state back, whatever the edit was.
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
            # The latest are the likeliest.
            made = reversed(self._proposals.get(tp, {}))
            if not any((each.leader_epoch, each.partition_epoch, each.isr) == proposal for each in made):
                epoch = after.leader_epoch
                yield f"{tp}: ISR {before.isr} became {after.isr} in leader epoch {epoch}, not proposed by the leader"


def _shape(tp: TopicPartition, leadership: LeaderAndIsr, assignment: ReplicaAssignment) -> Iterator[str]:
    leader, isr = leadership.leader, leadership.isr
    if leader != NO_LEADER and leader not in isr:
        yield f"{tp}: leader {leader} is not in the ISR {isr}"
    if not set(isr) <= set(assignment.replicas):
        yield f"{tp}: ISR {isr} is not within the replicas {assignment.replicas}"
    if len(set(isr)) != len(isr):
        yield f"{tp}: ISR {isr} has a duplicate"


def _new_epoch(tp: TopicPartition, before: LeaderAndIsr, after: LeaderAndIsr) -> Iterator[str]:
    """Check a controller's own decision: only an unclean election may add a broker to the ISR."""
    strangers = tuple(r for r in after.isr if r not in before.isr)
    if strangers and not is_unclean(before, after):
        yield f"{tp}: {strangers} joined the ISR {after.isr} with leader epoch {after.leader_epoch}"


def is_unclean(before: LeaderAndIsr, after: LeaderAndIsr) -> bool:
    """Return whether an election from outside the ISR took place and is reported as one (KIP-704)."""
    is_reported = after.leader_recovery_state is LeaderRecoveryState.RECOVERING
    is_alone = after.isr == (after.leader,) and after.leader not in before.isr
    return is_reported and is_alone and after.leader_epoch > before.leader_epoch


def _outside_of_moves(tp: TopicPartition, before: ReplicaAssignment, after: ReplicaAssignment) -> Iterator[str]:
    """Check a change of replicas that do not move: a move may start from them, or their order may change."""
    if sorted(after.origin_replicas) != sorted(before.replicas):
        yield f"{tp}: replicas {before.replicas} became {after.origin_replicas} without a move"


def _end_of_move(tp: TopicPartition, moving: ReplicaAssignment, after: Partition) -> Iterator[str]:
    replicas, isr = after.assignment.replicas, () if after.leadership is None else after.leadership.isr
    # The move is complete: all replicas of the target are in sync, and one of them leads.
    if set(replicas) == set(moving.target_replicas):
        if not set(replicas) <= set(isr):
            yield f"{tp}: its move to {replicas} ended with the ISR {isr}"
        if after.leadership is None or after.leadership.leader not in replicas:
            yield f"{tp}: its move to {replicas} ended without a leader"
    # The only other end is a cancel, which restores the original replicas.
    elif set(replicas) != set(moving.origin_replicas):
        yield f"{tp}: its move from {moving.origin_replicas} to {moving.target_replicas} ended at {replicas}"
