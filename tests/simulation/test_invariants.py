"""Each check of a simulation reports its violation, and accepts valid histories."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from simulator.safety.answers import Answers
from tests.simulation.histories import (
    FIRST,
    MOVING,
    PLAIN,
    SECOND,
    TARGET,
    TP,
    History,
    moved_to_target,
    topic_of_the_same_name,
    whole_move,
)
from transport.messages import UpdateMetadataResponse
from transport.metadata import LEADER_DURING_DELETE, ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import Check, Create, Delete, Set
from transport.wire.codec import encode
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.frames import frame

Story = Callable[[History], None]


def judged(story: Story) -> str:
    history = History()
    story(history)
    return history.found or ""


# --- one controller ---------------------------------------------------------------------------------------------


def deposed_controller_writes(h: History) -> None:
    h.elect(SECOND)
    h.bump(FIRST)


def deposed_controller_leaves_a_stray(h: History) -> None:
    h.elect(SECOND)
    h.commit(FIRST, Create(f"{paths.STRAYS}/x"))


def deposed_controller_removes_a_request(h: History) -> None:
    h.commit("admin", Create(paths.REASSIGN_PARTITIONS))
    h.elect(SECOND)
    h.commit(FIRST, Delete(paths.REASSIGN_PARTITIONS))


def deposed_controller_resigns(h: History) -> None:
    h.elect(SECOND)
    h.commit(FIRST, Delete(paths.CONTROLLER))


def state_of_an_earlier_controller_epoch(h: History) -> None:
    h.elect(FIRST)
    h.bump(FIRST)


def controller_epoch_raised_by_two(h: History) -> None:
    h.elect(SECOND, 3)


def controller_epoch_raised_beside_the_office(h: History) -> None:
    h.commit(SECOND, Set(paths.CONTROLLER_EPOCH, b"2", 1))


def order_at_an_epoch_that_nobody_has(h: History) -> None:
    h.tell(1, h.told(), epoch=2)


def order_of_another_controller(h: History) -> None:
    h.tell(1, h.told(), host=SECOND)


@pytest.mark.parametrize(
    ("story", "text"),
    [
        (deposed_controller_writes, "controller-101 wrote /brokers/topics/orders/partitions/0/state, though contr"),
        (deposed_controller_leaves_a_stray, "controller-101 wrote /klamm/strays/x, though controller-102 holds office"),
        (deposed_controller_removes_a_request, "controller-101 wrote /admin/reassign_partitions, though"),
        (deposed_controller_resigns, "controller-101 wrote /controller, though controller-102 holds office at epoch 2"),
        (state_of_an_earlier_controller_epoch, "wrote orders-0 with controller epoch 1, though 2 is in effect"),
        (controller_epoch_raised_by_two, "controller-102 wrote controller epoch 3 where 2 was next"),
        (controller_epoch_raised_beside_the_office, "raised the controller epoch to 2 while controller 101 holds"),
        (order_at_an_epoch_that_nobody_has, "controller-101 sent LeaderAndIsrRequest at epoch 2 of no controller"),
        (order_of_another_controller, "controller-102 sent LeaderAndIsrRequest at epoch 1 of controller-101"),
    ],
)
async def test_a_second_controller_is_seen(story: Story, text: str) -> None:
    assert text in judged(story)


async def test_a_new_controller_takes_over_what_the_old_one_had(h: History) -> None:
    h.commit(SECOND, Create("/klamm/controllers"), Check(paths.CONTROLLER_EPOCH, 1))
    h.elect(SECOND)
    h.bump(SECOND, controller_epoch=2)
    h.commit(SECOND, Create(f"{paths.STRAYS}/x"))
    h.tell(1, h.told(), host=SECOND, epoch=2)
    h.tell(2, h.told())  # late, and fenced by the broker
    h.commit(SECOND, Delete(paths.CONTROLLER))
    assert h.found is None


async def test_an_operator_may_write_what_a_controller_may_not(h: History) -> None:
    h.commit("admin", Set(paths.partition_state(TP), b"damage", -1))
    h.commit("admin", Set(paths.topic(TP.topic), b"damage", -1), Delete(paths.CONTROLLER))
    assert h.found is None


# --- leadership -------------------------------------------------------------------------------------------------


def leader_epoch_falls(h: History) -> None:
    h.bump()
    h.write(leader_epoch=0)


def controller_epoch_falls(h: History) -> None:
    h.elect(SECOND)
    h.bump(SECOND, controller_epoch=2)
    h.elect(SECOND)
    h.bump(SECOND, controller_epoch=1)


def leader_outside_the_isr(h: History) -> None:
    h.bump(leader=3, isr=(1, 2))


def isr_outside_the_replicas(h: History) -> None:
    h.ask(1, 2, 3, 4)
    h.write(isr=(1, 2, 3, 4))


def another_leader_in_the_same_epoch(h: History) -> None:
    h.write(leader=2)


def isr_shrinks_unasked_in_the_same_epoch(h: History) -> None:
    h.write(isr=(1, 2))


def isr_asked_for_at_another_partition_epoch(h: History) -> None:
    h.ask(1, 2)
    h.write(isr=(1, 2, 3))
    h.write(isr=(1, 2))


def controller_takes_a_stranger_into_the_isr(h: History) -> None:
    h.bump(isr=(1, 2))
    h.bump(leader=3, isr=(3, 1))


def leader_without_an_isr(h: History) -> None:
    h.bump(isr=())


def replicas_cut_before_the_isr(h: History) -> None:
    h.write(assignment=MOVING)
    h.grow(1, 2, 3, 4, 5, 6)
    h.bump(leader=4)
    h.write(assignment=TARGET)


def move_ends_before_the_target_caught_up(h: History) -> None:
    h.write(assignment=MOVING)
    h.bump()
    h.grow(1, 4)
    h.bump(leader=4, isr=(4,))
    h.write(assignment=TARGET)


def move_ends_without_a_leader(h: History) -> None:
    moved_to_target(h)
    h.bump(leader=-1)
    h.write(assignment=TARGET)


def move_ends_elsewhere(h: History) -> None:
    moved_to_target(h)
    h.write(assignment=ReplicaAssignment((4, 5, 6, 1)))


def replicas_change_without_a_move(h: History) -> None:
    h.bump(leader=3, assignment=ReplicaAssignment((3, 1, 4)), isr=(1, 3))


def move_that_forgets_where_it_began(h: History) -> None:
    h.bump(assignment=ReplicaAssignment((4, 1, 2), (4,), (1,)), isr=(1, 2))


def order_ends_a_move(h: History) -> None:
    h.write(assignment=MOVING)
    h.bump(assignment=ReplicaAssignment((3, 1, 2, 4, 5, 6)), leader=3)


def unclean_election_that_nobody_allowed(h: History) -> None:
    h.bump(leader=-1, isr=(1,))
    h.elect_as_nobody_asked(2)


@pytest.mark.usefixtures("autojump_clock")
async def test_an_invalid_setting_forbids_an_unclean_election() -> None:
    h = History()
    h.commit("admin", Create("/config"), Create(paths.TOPIC_CONFIGS), Create(paths.BROKER_CONFIGS))
    for path, value in ((paths.broker_config(None), "true"), (paths.topic_config(TP.topic), "perhaps")):
        h.commit("admin", Create(path, formats.encode_config({"unclean.leader.election.enable": value})))
    await trio.sleep(16.0)  # until no controller can have read the settings from before
    unclean_election_that_nobody_allowed(h)
    assert h.found == "orders-0: broker 2 leads from outside the ISR (1,), which nothing allowed"


@pytest.mark.parametrize(
    ("story", "text"),
    [
        (unclean_election_that_nobody_allowed, "broker 2 leads from outside the ISR (1,), which nothing allowed"),
        (leader_epoch_falls, "orders-0: leader epoch 1 was followed by 0"),
        (controller_epoch_falls, "controller-102 wrote orders-0 with controller epoch 1, though 3 is in effect"),
        (leader_outside_the_isr, "orders-0: leader 3 is not in the ISR (1, 2)"),
        (isr_outside_the_replicas, "orders-0: ISR (1, 2, 3, 4) is not within the replicas (1, 2, 3)"),
        (another_leader_in_the_same_epoch, "orders-0: leader 1 was followed by 2 in leader epoch 0"),
        (
            isr_shrinks_unasked_in_the_same_epoch,
            "ISR (1, 2, 3) became (1, 2) in leader epoch 0, not proposed by the leader",
        ),
        (isr_asked_for_at_another_partition_epoch, "became (1, 2) in leader epoch 0, not proposed by the leader"),
        (controller_takes_a_stranger_into_the_isr, "orders-0: (3,) joined the ISR (3, 1) with leader epoch 2"),
        (leader_without_an_isr, "orders-0: leader 1 is not in the ISR ()"),
        (replicas_cut_before_the_isr, "orders-0: ISR (1, 2, 3, 4, 5, 6) is not within the replicas (4, 5, 6)"),
        (move_ends_before_the_target_caught_up, "orders-0: its move to (4, 5, 6) ended with the ISR (4,)"),
        (move_ends_without_a_leader, "orders-0: its move to (4, 5, 6) ended without a leader"),
        (replicas_change_without_a_move, "orders-0: replicas (1, 2, 3) became (3, 1, 4) without a move"),
        (move_that_forgets_where_it_began, "orders-0: replicas (1, 2, 3) became (1, 2) without a move"),
        (order_ends_a_move, "its move from (1, 2, 3) to (4, 5, 6) ended at (3, 1, 2, 4, 5, 6)"),
        (move_ends_elsewhere, "its move from (1, 2, 3) to (4, 5, 6) ended at (4, 5, 6, 1)"),
    ],
)
async def test_a_leadership_that_may_not_be_is_seen(story: Story, text: str) -> None:
    assert text in judged(story)


def cancelled_move(h: History) -> None:
    h.write(assignment=MOVING)
    h.bump()
    h.grow(1, 2, 3, 4)
    h.bump(assignment=PLAIN, isr=(1, 2, 3))


def another_order(h: History) -> None:
    h.bump(assignment=ReplicaAssignment((3, 1, 2)), leader=3)


def assignment_rewritten_by_hand_is_written_back(h: History) -> None:
    h.write("admin", assignment=ReplicaAssignment((4, 5)))
    h.write(assignment=PLAIN)


def all_members_lose_their_disks(h: History) -> None:
    h.bump(isr=(1,))
    h.wipe(1)
    h.bump(isr=(), leader=-1)


def unclean_election(h: History) -> None:
    h.bump(leader=-1, isr=(1,))
    h.elect_uncleanly(2)


def unclean_election_that_settings_allow(h: History) -> None:
    h.commit("admin", Create("/config"), Create(paths.TOPIC_CONFIGS))
    setting = formats.encode_config({"unclean.leader.election.enable": "true"})
    h.commit("admin", Create(paths.topic_config(TP.topic), setting))
    h.bump(leader=-1, isr=(1,))
    h.elect_as_nobody_asked(2)


def leader_that_recovers_goes_on(h: History) -> None:
    unclean_election(h)
    h.bump()


@pytest.mark.parametrize(
    "story",
    [
        whole_move,
        cancelled_move,
        another_order,
        assignment_rewritten_by_hand_is_written_back,
        all_members_lose_their_disks,
        unclean_election,
        unclean_election_that_settings_allow,
        leader_that_recovers_goes_on,
        topic_of_the_same_name,
    ],
)
async def test_what_a_controller_may_do_with_leaderships_passes(story: Story) -> None:
    assert judged(story) == ""


# --- identities -------------------------------------------------------------------------------------------------


def begins_to_move(h: History) -> None:
    h.commit("admin", Create(paths.REASSIGNMENTS), Create(paths.topic_reassignments(TP.topic)))
    h.write(assignment=MOVING)
    h.commit(FIRST, Create(paths.reassignment(TP)))


def override_with_another_identity(h: History) -> None:
    begins_to_move(h)
    h.commit(FIRST, Delete(paths.reassignment(TP)), Create(paths.reassignment(TP)))


def override_without_identity(h: History) -> None:
    begins_to_move(h)
    h.commit(FIRST, Delete(paths.reassignment(TP)))


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("story", [override_with_another_identity, override_without_identity])
async def test_a_reassignment_that_becomes_another_one_is_seen(story: Story) -> None:
    assert "the move of orders-0 changed its identity from" in judged(story)


@pytest.mark.requirement("B2")
async def test_the_next_reassignment_of_a_partition_may_be_another_one(h: History) -> None:
    begins_to_move(h)
    h.write(assignment=ReplicaAssignment((6, 1, 2, 3), (6,), (1, 2, 3)))
    h.write(assignment=PLAIN)
    h.commit(FIRST, Delete(paths.reassignment(TP)))
    h.commit(FIRST, Create(paths.reassignment(TP)))
    h.write(assignment=MOVING)
    assert h.found is None


# --- orders -----------------------------------------------------------------------------------------------------


async def test_an_order_that_was_never_durable_is_seen(h: History) -> None:
    h.tell(2, h.told(leader=2, leader_epoch=1, partition_epoch=1))
    assert h.found == (
        "broker 2 was told leader epoch 1, leader 2, ISR (1, 2, 3) of orders-0 at partition epoch 1, "
        "where nothing is durable"
    )


async def test_metadata_that_differ_from_what_is_durable_are_seen(h: History) -> None:
    h.publish(2, h.told(isr=(1, 2)))
    assert "ISR (1, 2) of orders-0 at partition epoch 0, where leader epoch 0, leader 1" in (h.found or "")


async def test_two_leaders_of_one_epoch_are_seen(h: History) -> None:
    h.tell(1, h.told())
    h.commit("admin", Delete(paths.partition_state(TP)))
    h.state = h.state.__class__(2, 0, (2,), 0, 1)
    h.commit(
        "admin", Create(paths.partition_state(TP), b'{"leader":2,"isr":[2],"leader_epoch":0,"controller_epoch":1}')
    )
    h.tell(2, h.told())
    assert h.found == "broker 2 was told that 2 leads orders-0, but 1 leads it in epoch 0"


async def test_late_orders_and_orders_about_a_topic_under_deletion_pass(h: History) -> None:
    first = h.told()
    for _ in range(100):
        h.bump()
        h.tell(1, h.told())
    h.tell(2, first)
    h.publish(2, h.told(leader=LEADER_DURING_DELETE))
    assert h.found is None


# --- answers ----------------------------------------------------------------------------------------------------


def asked(number: int) -> bytes:
    return frame(RequestEnvelope(18, 0, number, "tests", b"\x90").pack())


def answered(number: int) -> bytes:
    return frame(ResponseEnvelope(number, 0, encode(UpdateMetadataResponse())).pack())


@pytest.mark.parametrize("number", [0, 127, 128, 255, 256, 65_535, 65_536, 2**31])
def test_each_request_is_answered_once(number: int) -> None:
    answers = Answers()
    for connection in (1, 2):
        assert answers.delivered("a", "b", connection, asked(number)) is None
        assert answers.delivered("b", "a", connection, answered(number)) is None
    assert "b answered number" in (answers.delivered("b", "a", 1, answered(number)) or "")


def test_an_answer_to_nobody_and_a_number_that_is_used_twice_are_seen() -> None:
    answers = Answers()
    assert answers.delivered("a", "b", 1, asked(1)) is None
    assert answers.delivered("a", "b", 1, asked(1)) == "a sent b two requests with number 1 on connection 1"
    assert "b answered number 2 on connection 1" in (answers.delivered("b", "a", 1, answered(2)) or "")
    assert "a answered number 1 on connection 1" in (answers.delivered("a", "b", 1, answered(1)) or "")
