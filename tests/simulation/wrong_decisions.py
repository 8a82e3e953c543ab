"""Wrong decisions to plant in the controller, one at a time, which the model must not take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from attrs import evolve
from msgspec.structs import replace

from controller.handlers import alter_partition, leader_elections, reassignments, topic_requests
from controller.model import choosing, elections, faults
from controller.model.context import ControllerContext
from controller.model.reassignment import UNIDENTIFIED, reassign_to
from controller.model.rounds import Rounds
from transport.errors import ErrorCode, Fault
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition

Plant = Callable[[pytest.MonkeyPatch], None]


def the_last_member_is_elected(patch: pytest.MonkeyPatch) -> None:
    """Elect the last replica that can lead instead of the first."""

    def last(candidate: elections.Candidate, isr: tuple[int, ...]) -> int | None:
        able = [r for r in candidate.replicas if r in isr and r in candidate.online]
        return able[-1] if able else None

    patch.setattr(elections, "_first", last)


def dead_members_stay_in_the_isr(patch: pytest.MonkeyPatch) -> None:
    """Take leadership from a dead broker, and leave it in the ISR."""
    without = elections.without_replicas

    def kept(current: LeaderAndIsr, gone: Collection[int]) -> tuple[int, tuple[int, ...]]:
        leader, _ = without(current, gone)
        return leader, current.isr

    patch.setattr(elections, "without_replicas", kept)


def the_isr_takes_the_order_of_the_assignment(patch: pytest.MonkeyPatch) -> None:
    """Sort the ISR of a new leader by the assignment."""
    offline = elections.offline

    def tidy(candidate: elections.Candidate) -> elections.Choice | None:
        choice = offline(candidate)
        return choice and evolve(choice, isr=tuple(r for r in candidate.replicas if r in choice.isr))

    patch.setattr(elections, "offline", tidy)


def a_move_ends_in_another_order(patch: pytest.MonkeyPatch) -> None:
    """Sort the replicas at the end of a move."""
    patch.setattr(reassignments, "completed", lambda moving: ReplicaAssignment(tuple(sorted(moving.target_replicas))))


def another_than_the_preferred_is_elected(patch: pytest.MonkeyPatch) -> None:
    """Elect any member of the ISR where the preferred one is asked for and cannot lead."""
    preferred = elections.preferred

    def anyone(candidate: elections.Candidate) -> elections.Choice | None:
        return preferred(candidate) or elections.reassign(candidate)

    patch.setattr(elections, "preferred", anyone)


def a_leader_is_elected_again(patch: pytest.MonkeyPatch) -> None:
    """Raise the leader epoch of partitions whose preferred replica leads already."""
    patch.setattr(leader_elections, "_is_led", lambda *_: False)


def a_move_elects_outside_of_its_target(patch: pytest.MonkeyPatch) -> None:
    """Take any live leader for one inside the target."""

    def anywhere(context: ControllerContext, tp: TopicPartition) -> bool:
        return context.is_online(tp, context.leadership[tp].leader)

    patch.setattr(reassignments, "_led_inside_target", anywhere)


def a_move_elects_in_the_order_of_the_isr(patch: pytest.MonkeyPatch) -> None:
    """Elect the member of the target that has been in the ISR for longest."""

    def eldest(candidate: elections.Candidate) -> elections.Choice | None:
        isr = candidate.leadership.isr
        able = [r for r in isr if r in candidate.online]
        return elections.Choice(able[0], isr, candidate.replicas) if able else None

    patch.setattr(elections, "reassign", eldest)


def a_move_elects_though_its_leader_stays(patch: pytest.MonkeyPatch) -> None:
    """Let the first of the target lead, even if another of the target leads."""
    inside = reassignments._led_inside_target  # noqa: SLF001

    def first(context: ControllerContext, tp: TopicPartition) -> bool:
        is_first = context.leadership[tp].leader == context.assignment(tp).target_replicas[0]
        return inside(context, tp) and is_first

    patch.setattr(reassignments, "_led_inside_target", first)


def brokers_that_leave_join_the_isr(patch: pytest.MonkeyPatch) -> None:
    """Grant an ISR with brokers that are dead or shutting down."""
    error = alter_partition._isr_error  # noqa: SLF001

    def lenient(broker_id: int, item: Any, current: LeaderAndIsr, context: ControllerContext) -> ErrorCode | None:  # noqa: ANN401
        found = error(broker_id, item, current, context)
        return None if found is ErrorCode.INELIGIBLE_REPLICA else found

    patch.setattr(alter_partition, "_isr_error", lenient)


def a_broker_that_leaves_stays_in_the_isr(patch: pytest.MonkeyPatch) -> None:
    """Move leadership off a broker that shuts down, and leave it in the ISR."""
    controlled_shutdown = elections.controlled_shutdown

    def kept(candidate: elections.Candidate) -> elections.Choice | None:
        choice = controlled_shutdown(candidate)
        return choice and evolve(choice, isr=candidate.leadership.isr)

    patch.setattr(elections, "controlled_shutdown", kept)


def new_partitions_count_on_dead_replicas(patch: pytest.MonkeyPatch) -> None:
    """Put all replicas of a new partition into its ISR."""
    first = choosing.first

    def hopeful(context: ControllerContext, tp: TopicPartition) -> Any:  # noqa: ANN401
        every = context.assignment(tp).replicas
        with pytest.MonkeyPatch.context() as for_now:
            for_now.setattr(elections, "initial", lambda online, epoch: LeaderAndIsr(online[0], 0, every, 0, epoch))
            return first(context, tp)

    patch.setattr(choosing, "first", hopeful)


def a_move_keeps_the_old_order(patch: pytest.MonkeyPatch) -> None:
    """Store the original replicas before the target."""

    def backwards(current: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
        new = reassign_to(current, target)
        return evolve(new, replicas=(*current.origin_replicas, *new.adding_replicas)) if new.adding_replicas else new

    patch.setattr(reassignments, "reassign_to", backwards)


def an_override_elects_anew(patch: pytest.MonkeyPatch) -> None:
    """Let the first survivor lead whenever an override abandons replicas."""
    leads = reassignments.leads

    def eager(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> Any:  # noqa: ANN401
        known = context.leadership[tp]
        context.leadership[tp] = replace(known, leader=-1)
        try:
            return leads(context, tp, new)
        finally:
            context.leadership[tp] = known

    patch.setattr(reassignments, "leads", eager)


def a_cancel_leaves_too_few_members(patch: pytest.MonkeyPatch) -> None:
    """Cancel at once, whatever min.insync.replicas says."""
    patch.setattr(reassignments, "_in_safety", lambda _context, _tp, new: new)


def replicas_are_added_on_dead_brokers(patch: pytest.MonkeyPatch) -> None:
    """Begin moves to brokers that are not alive."""

    def anywhere(current: Any, target: Sequence[int], _: object) -> Fault | None:  # noqa: ANN401
        return target_fault(current, target, range(1000))

    target_fault = faults.target_fault
    patch.setattr(faults, "target_fault", anywhere)


def topics_grow_by_one_replica(patch: pytest.MonkeyPatch) -> None:
    """Give the partitions that are added a single replica each."""
    added = topic_requests._added  # noqa: SLF001

    def lonely(*given: Any) -> Any:  # noqa: ANN401
        return {number: ReplicaAssignment(a.replicas[:1]) for number, a in added(*given).items()}

    patch.setattr(topic_requests, "_added", lonely)


def a_new_controller_raises_every_epoch(patch: pytest.MonkeyPatch) -> None:
    """Run phase A for every partition, moving or not."""
    advance = reassignments.advance

    def everything(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
        moving = dict(context.reassigning)
        context.reassigning |= dict.fromkeys(context.leadership, UNIDENTIFIED)
        yield from advance(context, [*tps, *context.leadership])
        context.reassigning = moving

    patch.setattr(reassignments, "advance", everything)


def dead_leaders_are_not_replaced(patch: pytest.MonkeyPatch) -> None:
    """Hold no election for partitions whose leader is gone."""
    patch.setattr(elections, "offline", lambda _: None)


def nothing_leaves_the_isr(patch: pytest.MonkeyPatch) -> None:
    """Do not take the replicas of dead brokers offline."""
    patch.setattr(choosing, "without", lambda *given: next(iter(given[3:]), None))


def failed_logs_count_as_usable(patch: pytest.MonkeyPatch) -> None:
    """Do not care whether a live broker can use its log."""
    patch.setattr(ControllerContext, "is_served", lambda self, _tp, broker_id: broker_id in self.brokers)

    def online(self: ControllerContext, tp: TopicPartition, replicas: Iterable[int]) -> tuple[int, ...]:
        del tp
        return tuple(r for r in replicas if r in self.brokers and r not in self.shutting_down)

    patch.setattr(ControllerContext, "online", online)


BUGS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        the_last_member_is_elected,
        dead_members_stay_in_the_isr,
        the_isr_takes_the_order_of_the_assignment,
        a_move_ends_in_another_order,
        another_than_the_preferred_is_elected,
        a_leader_is_elected_again,
        a_move_elects_outside_of_its_target,
        a_move_elects_in_the_order_of_the_isr,
        a_move_elects_though_its_leader_stays,
        brokers_that_leave_join_the_isr,
        a_broker_that_leaves_stays_in_the_isr,
        new_partitions_count_on_dead_replicas,
        a_move_keeps_the_old_order,
        an_override_elects_anew,
        a_cancel_leaves_too_few_members,
        replicas_are_added_on_dead_brokers,
        topics_grow_by_one_replica,
        a_new_controller_raises_every_epoch,
        dead_leaders_are_not_replaced,
        nothing_leaves_the_isr,
        failed_logs_count_as_usable,
    )
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a bug for the duration of the block."""
    with pytest.MonkeyPatch.context() as patch:
        BUGS[name](patch)
        yield
