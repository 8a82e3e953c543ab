"""Answers to administrators and brokers are checked against the durable state."""

from __future__ import annotations

import pytest
import trio

from simulator.safety.registrations import STALE_SECONDS
from tests.simulation.histories import FIRST, MOVING, SECOND, TP, History, topic_of_the_same_name
from transport.messages import ElectionType
from transport.metadata import EPOCH_DURING_DELETE, ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import ANY_VERSION, Create, Delete, Op, Set

pytestmark = pytest.mark.usefixtures("autojump_clock")


async def test_a_deletion_that_is_said_to_be_sure_was_marked(h: History) -> None:
    before = h.safety.before()
    h.commit(FIRST, Create(paths.delete_topic(TP.topic)))
    h.safety.deletion_answered(before, TP.topic)
    h.safety.deletion_answered(h.safety.before(), TP.topic)  # again, while the deletion is in progress
    assert h.found is None


async def test_a_deletion_that_nobody_will_carry_out_is_seen(h: History) -> None:
    h.safety.deletion_answered(h.safety.before(), TP.topic)
    assert h.found == "topic orders was reported to be deleted, but was not marked"


async def test_a_topic_whose_marker_went_without_it_is_undead_and_a_namesake_is_not(h: History) -> None:
    h.commit(FIRST, Create(paths.delete_topic(TP.topic)))
    h.commit(FIRST, Delete(paths.delete_topic(TP.topic)))
    assert h.safety.undead() == ["orders"]
    topic_of_the_same_name(h)
    assert h.safety.undead() == []


@pytest.mark.parametrize("leader", [1, 3])
async def test_a_preferred_election_that_took_place_elected_the_preferred_leader(h: History, leader: int) -> None:
    h.bump(leader=2)
    before = h.safety.before()
    h.bump(leader=leader)
    h.safety.election_answered(before, ElectionType.PREFERRED, TP)
    assert ("orders-0 was reported to have a new leader (PREFERRED)" in (h.found or "")) == (leader != 1)


@pytest.mark.parametrize(("order", "leader"), [((3, 1, 2), 3), ((3, 2, 1), 3), ((1, 2, 3), 1)])
async def test_an_order_that_is_said_to_be_in_effect_was(h: History, order: tuple[int, ...], leader: int) -> None:
    h.bump(leader=2)
    before = h.safety.before()
    h.bump(assignment=ReplicaAssignment(order), leader=leader)
    h.bump(assignment=ReplicaAssignment((2, 1, 3)), leader=2)  # as another administrator requests right after it
    h.safety.election_answered(before, ElectionType.PREFERRED, TP, (3, 1, 2))
    assert ("orders-0 was reported to have the order (3, 1, 2)" in (h.found or "")) == (order != (3, 1, 2))


async def test_an_unclean_election_that_took_place_elected_somebody(h: History) -> None:
    h.bump(leader=-1, isr=(1,))
    before = h.safety.before()
    h.safety.election_answered(before, ElectionType.UNCLEAN, TP)
    assert "orders-0 was reported to have a new leader (UNCLEAN)" in (h.found or "")


@pytest.mark.parametrize("leader", [1, 2])
async def test_a_broker_that_was_relieved_leads_nothing(h: History, leader: int) -> None:
    before = h.safety.before()
    h.bump(leader=leader)
    h.safety.relieved(before, 1)
    assert ("broker 1 was reported to be relieved, but leads orders-0" in (h.found or "")) == (leader == 1)


async def test_the_next_controller_knows_nothing_of_a_broker_that_shuts_down(h: History) -> None:
    before = h.safety.before()
    h.elect(SECOND)
    h.safety.relieved(before, 1)
    assert h.found is None


async def test_nobody_is_told_to_hold_what_it_was_told_to_delete_with_its_topic(h: History) -> None:
    h.order_deletion(2, EPOCH_DURING_DELETE)
    found = []
    for broker_id in (3, 2):
        h.tell(broker_id, h.told())
        found.append(h.found or "")
    assert found[0] == ""
    assert "of orders-0, which it was told to delete" in found[1]


async def test_an_order_sent_before_a_deletion_may_arrive_after_it(h: History) -> None:
    h.order_deletion(2, EPOCH_DURING_DELETE, number=7)
    found = []
    for number in (6, 8):
        h.tell(2, h.told(), number=number)
        found.append(h.found or "")
    assert found[0] == ""
    assert "of orders-0, which it was told to delete" in found[1]


def set_unclean(h: History, path: str, value: str | None) -> None:
    data = formats.encode_config({} if value is None else {"unclean.leader.election.enable": value})
    op: Op = Create(path, data) if h.tree.read(path) is None else Set(path, data, ANY_VERSION)
    h.commit("admin", op)


@pytest.mark.parametrize(
    ("default", "own", "is_allowed"),
    [
        ("true", None, True),
        ("true", "false", False),
        ("false", "true", True),
        (None, None, False),
    ],
)
async def test_a_topics_own_setting_outranks_the_default(
    h: History, default: str | None, own: str | None, *, is_allowed: bool
) -> None:
    h.commit("admin", Create("/config"), Create(paths.TOPIC_CONFIGS), Create(paths.BROKER_CONFIGS))
    set_unclean(h, paths.topic_config(TP.topic), own)
    set_unclean(h, paths.broker_config(None), default)
    await trio.sleep(STALE_SECONDS + 1)
    assert h.safety.is_unclean_allowed(TP.topic) == is_allowed
    h.bump(leader=-1, isr=(1,))
    h.elect_as_nobody_asked(2)
    assert ("which nothing allowed" in (h.found or "")) != is_allowed


@pytest.mark.parametrize("seconds", [1, STALE_SECONDS + 1])
async def test_what_was_allowed_stays_so_for_a_while(h: History, seconds: float) -> None:
    h.commit("admin", Create("/config"), Create(paths.TOPIC_CONFIGS))
    set_unclean(h, paths.topic_config(TP.topic), "true")
    set_unclean(h, paths.topic_config(TP.topic), "false")
    await trio.sleep(seconds)
    h.bump(leader=-1, isr=(1,))
    h.elect_as_nobody_asked(2)
    assert ("which nothing allowed" in (h.found or "")) == (seconds > STALE_SECONDS)


MOVING_IN_ANOTHER_ORDER = ReplicaAssignment((4, 3, 1, 2), (4,), (1, 2))


@pytest.mark.parametrize(("restored", "is_right"), [((1, 2, 3), True), ((3, 1, 2), False)])
async def test_a_cancel_that_is_said_to_be_begun_restores_the_order(
    h: History, restored: tuple[int, ...], *, is_right: bool
) -> None:
    h.write(assignment=MOVING_IN_ANOTHER_ORDER)
    before = h.safety.before()
    h.write(assignment=ReplicaAssignment((*restored, 4), (), (4,)))
    h.safety.cancel_answered(before, TP)
    assert ("orders-0 was reported to return to (1, 2, 3), but does not" in (h.found or "")) != is_right


async def test_a_cancel_may_be_overridden_and_repeated_before_its_answer(h: History) -> None:
    h.write(assignment=MOVING_IN_ANOTHER_ORDER)
    before = h.safety.before()
    h.write(assignment=ReplicaAssignment((1, 2, 3, 4), (), (4,)))
    again = h.safety.before()
    h.safety.cancel_answered(again, TP)  # it changes nothing
    h.write(assignment=ReplicaAssignment((5, 1, 2, 3), (5,), (1, 2, 3)))
    h.safety.cancel_answered(before, TP)
    assert h.found is None


async def test_a_state_written_by_hand_during_a_move_changes_nothing_about_its_origin(h: History) -> None:
    h.write(assignment=MOVING_IN_ANOTHER_ORDER)
    h.write("admin", isr=h.state.isr)
    before = h.safety.before()
    h.write(assignment=ReplicaAssignment((3, 1, 2, 4), (), (4,)))
    h.safety.cancel_answered(before, TP)
    assert "orders-0 was reported to return to (1, 2, 3), but does not" in (h.found or "")


async def test_a_state_written_by_hand_is_known_when_a_controller_writes_the_state_itself(h: History) -> None:
    h.write("admin", isr=h.state.isr)
    h.write(assignment=MOVING)
    assert h.safety.decisions.is_state_by_hand(TP)
    h.bump()
    assert not h.safety.decisions.is_state_by_hand(TP)


async def test_a_move_by_hand_starts_from_an_order_that_is_not_known(h: History) -> None:
    h.write("admin", assignment=MOVING_IN_ANOTHER_ORDER)
    before = h.safety.before()
    h.write(assignment=ReplicaAssignment((3, 1, 2, 4), (), (4,)))
    h.safety.cancel_answered(before, TP)
    assert h.found is None
