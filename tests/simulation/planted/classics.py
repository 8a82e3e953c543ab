"""Classic bugs: a missing fence, writes applied too early, elections that nothing allows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest
import trio
from attrs import evolve
from msgspec.structs import replace

from controller.events import Reload
from controller.handlers import (
    deletion,
    leader_elections,
    reassignment_requests,
    reassignments,
)
from controller.model import choosing, elections
from controller.model.batches import batch_of
from controller.model.context import ControllerContext
from controller.model.reassignment import completed
from controller.model.rounds import Change, ChangeOutcome, Rounds, Step, TellLeaderAndIsr
from controller.model.state_machines import ReplicaPhase
from controller.node import dispatch, round_runner, service
from tests.simulation.planted.edits import edit
from transport.errors import ErrorCode, Fault
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import paths
from transport.store.chunks import plan_chunks
from transport.store.commit import commit_chunk
from transport.store.protocol import Check, MetadataStore


def no_fence_on_a_write(patch: pytest.MonkeyPatch) -> None:
    """Write without checking the version of `/controller_epoch`."""

    async def unfenced(store: MetadataStore, groups: Sequence[Any], _: Check, known: Collection[str]) -> Any:  # noqa: ANN401
        return await commit_chunk(store, groups, None, known)

    patch.setattr(round_runner, "commit_chunk", unfenced)


def apply_before_commit(patch: pytest.MonkeyPatch) -> None:
    """Apply and publish what has not been committed yet."""

    async def hasty(self: round_runner.RoundRunner, change: Change) -> ChangeOutcome:
        decided = batch_of(self.context, [*change.steps, *(step for decide in change.later for step in decide())])
        self.apply(change.round, decided)
        self.publish(change.round, [decided])
        steps = [step for step in decided if step.writes]
        fence = Check(paths.CONTROLLER_EPOCH, self.context.epoch_version)
        refused: list[Step] = []
        for chunk in plan_chunks([step.writes for step in steps]):
            members = [steps[i] for i in chunk]
            result = await commit_chunk(self.store, [step.writes for step in members], fence)
            if result.zxid is not None:
                committed = batch_of(self.context, [members[i] for i in result.committed])
                self._commit_seen(change.round, result.zxid, committed)
            refused += [members[i] for i in result.conflicts]
        await trio.lowlevel.checkpoint()
        return ChangeOutcome(tuple(refused))

    patch.setattr(round_runner.RoundRunner, "_change", hasty)


def no_epoch_bump(patch: pytest.MonkeyPatch) -> None:
    """Change leaders and ISRs without a new leader epoch."""
    bumped = elections.led_by

    def unbumped(choice: elections.Choice, current: LeaderAndIsr, controller_epoch: int) -> LeaderAndIsr:
        return replace(bumped(choice, current, controller_epoch), leader_epoch=current.leader_epoch)

    patch.setattr(elections, "led_by", unbumped)


def retire_without_a_live_leader_in_the_target(patch: pytest.MonkeyPatch) -> None:
    """Begin B4 and B6 as soon as the ISR covers TRS, whoever leads."""
    patch.setattr(reassignments, "_led_inside_target", reassignments.may_finish)


def replicas_become_the_target_before_b4(patch: pytest.MonkeyPatch) -> None:
    """Write RS = TRS first, while the removing replicas are in the ISR."""
    finish, write = reassignments.finish, reassignments.write_assignments

    def as_before(*_: object) -> Any:  # noqa: ANN401
        """Leave the leadership as it is."""

    def backwards(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
        def decide(tp: TopicPartition) -> Any:  # noqa: ANN401
            return reassignments.change_to(context, tp, completed(context.assignment(tp)), as_before)

        yield from write(context, "B6", tps, decide, lambda _: None)
        yield from finish(context, tps)

    patch.setattr(reassignments, "finish", backwards)


def watches_are_not_armed_again_after_a_reconnect(patch: pytest.MonkeyPatch) -> None:
    """Continue after a connection was lost, and the session kept, as if the watches were still armed."""
    look_again = service.ControllerService._look_again  # noqa: SLF001

    async def deaf(self: service.ControllerService, event: Reload) -> None:
        if not self.is_active:
            await look_again(self, event)

    patch.setattr(service.ControllerService, "_look_again", deaf)


def leader_and_isr_for_a_topic_that_is_being_deleted(patch: pytest.MonkeyPatch) -> None:
    """Keep the leaders of a topic that is being deleted, and send them to brokers along with the deletions."""
    started, orders = ControllerContext._deletion_started, deletion._orders  # noqa: SLF001

    def kept(self: ControllerContext, topic: str) -> None:
        led = {tp: state for tp, state in self.leadership.items() if tp.topic == topic}
        started(self, topic)
        self.leadership.update(led)

    def and_leaders(context: ControllerContext, brokers: Collection[int], names: Iterable[str]) -> Step:
        step = orders(context, brokers, names)
        led = [tp for tp in step.subjects if tp in context.leadership]
        told = TellLeaderAndIsr([context.assignment(tp).replicas for tp in led], list(map(context.describe, led)))
        return evolve(step, publications=(*step.publications, told))

    patch.setattr(ControllerContext, "_deletion_started", kept)
    patch.setattr(deletion, "_orders", and_leaders)


def a_topic_is_gone_before_the_data_of_dead_brokers(patch: pytest.MonkeyPatch) -> None:
    """Do not wait for dead brokers when a topic is deleted."""

    def is_done(context: ControllerContext, name: str) -> bool:
        replicas = [(tp, r) for tp in context.partitions([name]) for r in context.assignment(tp).replicas]
        left = [each for each in replicas if context.replica_phases.get(each) is not ReplicaPhase.DELETION_SUCCESSFUL]
        return all(broker_id not in context.brokers for _, broker_id in left)

    for module in (deletion, dispatch):
        patch.setattr(module, "is_done", is_done)


def unclean_elections_without_permission(patch: pytest.MonkeyPatch) -> None:
    """Let any replica lead where no member of the ISR can, and report it."""
    candidate = choosing.candidate

    def allowed(
        context: ControllerContext,
        tp: TopicPartition,
        replicas: tuple[int, ...] | None = None,
        unclean: Collection[str] = (),  # noqa: ARG001  every topic is allowed it
    ) -> elections.Candidate:
        return candidate(context, tp, replicas, {tp.topic})

    patch.setattr(choosing, "candidate", allowed)


def orders_are_heeded_in_the_middle_of_a_move(patch: pytest.MonkeyPatch) -> None:
    """Let a named order replace the stored assignment of a move."""
    fault = leader_elections._order_fault  # noqa: SLF001

    def careless(context: ControllerContext, tp: TopicPartition, order: tuple[int, ...]) -> Fault | None:
        found = fault(context, tp, order)
        if found is None or found[0] is not ErrorCode.REASSIGNMENT_IN_PROGRESS:
            return found
        return None if leader_elections._why_not_preferred(context, tp, order[0]) is None else found  # noqa: SLF001

    patch.setattr(leader_elections, "_order_fault", careless)


def cancels_without_a_survivor(patch: pytest.MonkeyPatch) -> None:
    """Let a cancel give a partition to any live replica, even if the ISR consists of target replicas alone."""

    def anybody(context: ControllerContext, tp: TopicPartition, new: ReplicaAssignment) -> tuple[int, ...]:
        return surviving(context, tp, new) or context.online(tp, new.replicas)

    surviving = reassignments._surviving  # noqa: SLF001
    patch.setattr(reassignments, "_surviving", anybody)


def brokers_are_relieved_of_nothing(patch: pytest.MonkeyPatch) -> None:
    """Answer a controlled shutdown without an election."""
    edit(
        patch,
        "controller.handlers.controlled_shutdown:controlled_shutdown",
        ("[tp for tp in _movable(context, broker_id) if _leader(context, tp) == broker_id]", "[]"),
    )
    patch.setattr(elections, "controlled_shutdown", lambda _: None)


def a_last_member_leaves_the_isr(patch: pytest.MonkeyPatch) -> None:
    """Let the ISR become empty when its last members go at once."""
    without = elections.without_replicas

    def emptied(current: LeaderAndIsr, gone: Collection[int]) -> tuple[int, tuple[int, ...]]:
        leader, _ = without(current, gone)
        return leader, tuple(r for r in current.isr if r not in gone)

    patch.setattr(elections, "without_replicas", emptied)


def a_cancel_forgets_the_order(patch: pytest.MonkeyPatch) -> None:
    """Restore the replicas of a cancelled move in the order of the stored assignment."""
    patch.setattr(reassignment_requests, "_original", lambda context, tp: context.assignment(tp).origin_replicas)


BUGS = (
    no_fence_on_a_write,
    apply_before_commit,
    no_epoch_bump,
    retire_without_a_live_leader_in_the_target,
    replicas_become_the_target_before_b4,
    watches_are_not_armed_again_after_a_reconnect,
    leader_and_isr_for_a_topic_that_is_being_deleted,
    a_topic_is_gone_before_the_data_of_dead_brokers,
    unclean_elections_without_permission,
    brokers_are_relieved_of_nothing,
    orders_are_heeded_in_the_middle_of_a_move,
    cancels_without_a_survivor,
    a_last_member_leaves_the_isr,
    a_cancel_forgets_the_order,
)
