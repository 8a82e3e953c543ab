"""The durable state of one partition, and its successors."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from transport.metadata import NO_LEADER, LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment


@frozen
class Row:
    """A partition in the store. Its leadership is None until it has had a leader."""

    assignment: ReplicaAssignment
    leadership: LeaderAndIsr | None = None

    @property
    def replicas(self) -> tuple[int, ...]:
        """All replicas, in the order of the assignment."""
        return self.assignment.replicas

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that the partition is to have (TRS): all, unless it is being reassigned."""
        return without(self.assignment.replicas, self.assignment.removing_replicas)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas that the partition had (ORS): all, unless it is being reassigned."""
        return without(self.assignment.replicas, self.assignment.adding_replicas)

    @property
    def is_moving(self) -> bool:
        """Whether the partition is being reassigned."""
        return bool(self.assignment.adding_replicas or self.assignment.removing_replicas)

    @property
    def leader(self) -> int:
        """The leader; -1 if there is none."""
        return NO_LEADER if self.leadership is None else self.leadership.leader

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas; () if there has been no leader."""
        return () if self.leadership is None else self.leadership.isr

    @property
    def is_caught_up(self) -> bool:
        """Whether the ISR covers the target, so that the move may end."""
        return set(self.target) <= set(self.isr)

    def assigned(self, assignment: ReplicaAssignment) -> Row:
        """Return the row with another assignment, and the same leadership."""
        return Row(assignment, self.leadership)

    def led(
        self,
        controller_epoch: int,
        leader: int | None = None,
        isr: tuple[int, ...] | None = None,
        recovery: LeaderRecoveryState | None = None,
    ) -> Row:
        """Return the row in the next leader epoch, with another leader or ISR if given."""
        now = self.leadership
        assert now is not None, "a partition that has never had a leader has no next leader epoch"
        new = LeaderAndIsr(
            leader=now.leader if leader is None else leader,
            leader_epoch=now.leader_epoch + 1,
            isr=now.isr if isr is None else isr,
            partition_epoch=now.partition_epoch + 1,
            controller_epoch=controller_epoch,
            leader_recovery_state=now.leader_recovery_state if recovery is None else recovery,
        )
        return evolve(self, leadership=new)


def without(replicas: Iterable[int], left_out: Iterable[int]) -> tuple[int, ...]:
    """Return the replicas without some of them, in the same order."""
    return tuple(r for r in replicas if r not in left_out)


def within(replicas: Iterable[int], kept: Iterable[int]) -> tuple[int, ...]:
    """Return those of the replicas that are kept, in the same order."""
    return tuple(r for r in replicas if r in kept)
