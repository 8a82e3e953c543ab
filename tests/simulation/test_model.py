"""The model on its own: small cases of each rule, from Kafka's behaviour and the table of a move's steps."""

from __future__ import annotations

from typing import Final

import pytest

from simulator.model.dues import due, due_at_failover
from simulator.model.row import Row
from simulator.model.rules import outcomes
from simulator.model.topics import is_addition
from simulator.model.view import Asked, Proposal, Standing, View
from transport.messages import ElectionType
from transport.metadata import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment

LIVE, LEAVING, LOGLESS = Standing.LIVE, Standing.LEAVING, Standing.LOGLESS
STUCK, UNFIT = Standing.STUCK, Standing.UNFIT
PLAIN: Final = ReplicaAssignment((1, 2, 3))
MOVING: Final = ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
PREFERRED: Final = Asked(elections=frozenset({ElectionType.PREFERRED}))

Brief = tuple[tuple[int, ...], int, tuple[int, ...], int]
"""Replicas, leader, ISR, and how much the leader epoch has risen."""


def led(leader: int, *isr: int, assignment: ReplicaAssignment = PLAIN) -> Row:
    return Row(assignment, LeaderAndIsr(leader, 5, isr, 8, 2))


def view(*live: int, event: str = "BrokerChange", asked: Asked | None = None, **others: Standing) -> View:
    """Return a view with these live brokers, and others by name: b1=LEAVING."""
    standings = {int(name[1:]): standing for name, standing in others.items()}
    return View(3, event, dict.fromkeys(live, LIVE) | standings, asked or Asked())


def brief(row: Row) -> Brief:
    assert row.leadership is not None
    return row.replicas, row.leader, row.isr, row.leadership.leader_epoch - 5


def results(name: str, row: Row, seen: View) -> list[Brief]:
    return [brief(each) for each in outcomes(name, row, seen)]


# --- first leaders and elections --------------------------------------------------------------------------------


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    assert outcomes("create", Row(PLAIN), view(2, 3)) == (Row(PLAIN, LeaderAndIsr(2, 0, (2, 3), 0, 3)),)


def test_a_new_partition_without_a_live_replica_gets_no_leader() -> None:
    assert outcomes("create", Row(PLAIN), view(4)) == ()


@pytest.mark.parametrize(
    ("row", "seen", "leader_and_isr"),
    [
        (led(1, 1, 2, 3), view(2, 3), (2, (2, 3))),
        # The leader is chosen in the order of the assignment, and the ISR keeps its own.
        (led(1, 3, 1, 2), view(2, 3), (2, (3, 2))),
        (led(-1, 3, 2), view(1, 3), (3, (3,))),
        (led(1, 1, 2, 3), view(3, b2=LEAVING), (3, (3,))),
        (led(1, 1, 2, 3), view(3, b1=LOGLESS, b2=LOGLESS), (3, (3,))),
        (led(1, 1, 2, 3), view(3, b1=UNFIT, b2=STUCK), (3, (1, 3))),
        (led(4, 1, 2, 3), view(b1=STUCK, b2=UNFIT), (2, (2,))),
        (led(4, 1, 2), view(b1=STUCK), (1, (1,))),
    ],
)
def test_the_first_live_member_of_the_isr_replaces_a_leader(
    row: Row, seen: View, leader_and_isr: tuple[int, tuple[int, ...]]
) -> None:
    assert results("elect", row, seen) == [(PLAIN.replicas, *leader_and_isr, 1)]


def test_a_live_leader_is_not_replaced() -> None:
    assert outcomes("elect", led(2, 1, 2, 3), view(1, 2, 3)) == ()


def test_without_a_live_member_the_first_live_replica_leads_alone_and_recovers() -> None:
    [row] = outcomes("elect", led(-1, 1), view(3, 2))
    assert row == Row(PLAIN, LeaderAndIsr(2, 6, (2,), 9, 3, LeaderRecoveryState.RECOVERING))


def test_a_replica_that_may_be_deleted_yet_may_be_passed_over_then() -> None:
    seen = View(3, "BrokerChange", {2: LIVE, 3: LIVE}, recalled=frozenset({2}))
    assert [row.leader for row in outcomes("elect", led(-1, 1), seen)] == [2, 3]


@pytest.mark.parametrize(
    ("row", "seen", "leaders"),
    [
        (led(2, 2, 1, 3), view(1, 2, 3, event="ElectLeaders", asked=PREFERRED), [1]),
        (led(1, 2, 1, 3), view(1, 2, 3, event="ElectLeaders", asked=PREFERRED), []),
        (led(2, 2, 3), view(1, 2, 3, event="ElectLeaders", asked=PREFERRED), []),
        (led(2, 2, 1, 3), view(2, 3, event="ElectLeaders", asked=PREFERRED), []),
        (led(2, 2, 1, 3), view(1, 2, 3, event="ElectLeaders"), []),
        (led(2, 2, 1, 3), view(1, 2, 3, event="PreferredReplicaElection"), [1]),
        (led(2, 2, 1, 3), view(1, 2, 3, event="AutoPreferredReplicaLeaderElection"), [1]),
        (led(1, 1, 4, assignment=MOVING), view(1, 4, event="AutoPreferredReplicaLeaderElection"), []),
        (led(2, 2, 1, 3), view(1, 2, 3, event="BrokerChange"), []),
    ],
)
def test_the_preferred_leader_and_no_other_is_elected(row: Row, seen: View, leaders: list[int]) -> None:
    rows = outcomes("elect", row, seen)
    assert [each.leader for each in rows] == leaders
    assert all(each.isr == row.isr for each in rows)


def test_an_order_is_written_with_its_leader() -> None:
    asked = Asked(orders=((3, 1, 2), (2, 1), (1, 2, 3), ()))
    assert results("order", led(1, 1, 3, 2), view(1, 2, 3, asked=asked)) == [((3, 1, 2), 3, (1, 3, 2), 1)]


@pytest.mark.parametrize("row", [led(1, 1, 2), led(1, 1, 2, 3, assignment=MOVING)])
def test_an_order_is_refused_if_its_first_is_behind_or_the_partition_moves(row: Row) -> None:
    assert outcomes("order", row, view(1, 2, 3, asked=Asked(orders=((3, 1, 2),)))) == ()


# --- the ISR ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "seen", "after"),
    [
        (led(1, 1, 2, 3), view(1, 3), [(1, (1, 3))]),
        # A dead leader is replaced in the same commit, if another member of the ISR is alive.
        (led(1, 1, 2, 3), view(2, 3), [(2, (2, 3))]),
        (led(-1, 1, 2, 3), view(2, 3), [(2, (2, 3))]),
        (led(1, 1), view(2, 3), [(2, (2,)), (-1, (1,))]),
        (led(1, 1, 2), view(3), [(3, (3,)), (-1, (1, 2))]),
        (led(-1, 1, 2), view(3), [(3, (3,))]),
        (led(1, 1, 2), view(1, 2), []),
        # The last member may stay although it shuts down; if it leaves, it leaves alone.
        (led(1, 1, 2, 3), view(1, b2=LEAVING), [(1, (1,)), (1, (1, 2))]),
        (led(1, 1, 2, 3), view(3, b1=LEAVING), [(3, (3,)), (-1, (3,)), (1, (1, 3))]),
    ],
)
def test_what_is_gone_leaves_the_isr_unless_nobody_is_left(
    row: Row, seen: View, after: list[tuple[int, tuple[int, ...]]]
) -> None:
    assert results("leave", row, seen) == [(PLAIN.replicas, *each, 1) for each in after]


def test_a_controlled_shutdown_moves_leadership_and_empties_the_place_in_the_isr() -> None:
    seen = view(2, 3, b1=LEAVING, event="ControlledShutdown")
    assert results("leave", led(1, 1, 3, 2), seen) == [(PLAIN.replicas, 2, (3, 2), 1)]
    assert results("leave", led(3, 1, 3, 2), seen) == [(PLAIN.replicas, 3, (3, 2), 1)]


def test_the_last_member_of_an_isr_leads_until_its_shutdown_ends() -> None:
    assert outcomes("leave", led(1, 1), view(2, 3, b1=LEAVING, event="ControlledShutdown")) == ()


def test_a_follower_leaves_while_its_leaders_shutdown_is_not_over() -> None:
    seen = view(b1=LEAVING, b3=LEAVING, event="ControlledShutdown")
    assert results("leave", led(1, 1, 3), seen) == [(PLAIN.replicas, 1, (1,), 1)]


@pytest.mark.parametrize(
    ("row", "after"),
    [(led(1, 1, 2), (2, (2,))), (led(2, 1, 2), (2, (2,))), (led(1, 1), (-1, ())), (led(2, 2, 3), (2, (2, 3)))],
)
def test_a_broker_without_its_data_leaves_every_isr(row: Row, after: tuple[int, tuple[int, ...]]) -> None:
    seen = View(3, "BrokerChange", {2: LIVE, 3: LIVE}, emptied=frozenset({1}))
    assert results("expel", row, seen) == [(PLAIN.replicas, *after, 1)]


def test_a_proposal_is_granted_as_it_is() -> None:
    asked = Asked(proposals=(Proposal(1, 5, 8, (3, 1), 0),))
    [row] = outcomes("ISR", led(1, 1, 2), view(1, 3, asked=asked))
    assert row == Row(PLAIN, LeaderAndIsr(1, 5, (3, 1), 9, 3))


@pytest.mark.parametrize(
    "proposal",
    [
        Proposal(2, 5, 8, (1, 3), 0),
        Proposal(1, 4, 8, (1, 3), 0),
        Proposal(1, 5, 7, (1, 3), 0),
        Proposal(1, 5, 8, (3,), 0),
        Proposal(1, 5, 8, (1, 1), 0),
        Proposal(1, 5, 8, (1, 4), 0),
        Proposal(1, 5, 8, (1, 2), 0),
        Proposal(1, 5, 8, (1,), 1),
        Proposal(1, 5, 8, (1,), 7),
    ],
)
def test_a_proposal_of_another_leader_or_epoch_or_with_another_replica_is_not(proposal: Proposal) -> None:
    seen = view(1, 3, 4, b2=LEAVING, asked=Asked(proposals=(proposal,)))
    assert outcomes("ISR", led(1, 1), seen) == ()


# --- moves ------------------------------------------------------------------------------------------------------


def test_a_move_passes_through_the_rows_of_its_table() -> None:
    seen = view(1, 2, 3, 4, 5, 6, asked=Asked(targets=((4, 5, 6),)))
    [stored] = outcomes("U1", led(1, 1, 2, 3), seen)
    assert brief(stored) == (MOVING.replicas, 1, (1, 2, 3), 1)
    [told] = outcomes("A1", stored, seen)
    assert brief(told) == (MOVING.replicas, 1, (1, 2, 3), 2)
    [inside] = outcomes("B3", led(1, 1, 2, 3, 4, 5, 6, assignment=MOVING), seen)
    assert brief(inside) == (MOVING.replicas, 4, (1, 2, 3, 4, 5, 6), 1)
    [retired] = outcomes("B4", inside, seen)
    assert brief(retired) == (MOVING.replicas, 4, (4, 5, 6), 2)
    [done] = outcomes("B6", retired, seen)
    assert brief(done) == ((4, 5, 6), 4, (4, 5, 6), 3)
    [at_once] = outcomes("B6", inside, seen)
    assert brief(at_once) == ((4, 5, 6), 4, (4, 5, 6), 2)


@pytest.mark.parametrize(
    ("name", "row", "live"),
    [
        ("A1", led(4, 4, 5, 6, assignment=MOVING), (4, 5, 6)),
        ("A1", led(1, 1, 2, 3), (1, 2, 3)),
        ("B3", led(1, 1, 4, 5, assignment=MOVING), (1, 4, 5, 6)),
        ("B3", led(1, 1, 4, 5, 6, assignment=MOVING), (1, 2, 3)),
        ("B4", led(1, 1, 4, 5, 6, assignment=MOVING), (1, 4, 5, 6)),
        ("B4", led(4, 1, 4, 5, 6, assignment=MOVING), (1, 5, 6)),
        ("B4", led(4, 4, 5, 6, assignment=MOVING), (4, 5, 6)),
        ("B3", led(4, 1, 4, 5, 6, assignment=MOVING), (1, 4, 5, 6)),
        ("B6", led(1, 1, 4, 5, 6, assignment=MOVING), (1, 4, 5, 6)),
        ("B6", led(4, 4, 5, 6, assignment=MOVING), (5, 6)),
        ("B6", led(1, 1, 2, 3), (1, 2, 3)),
    ],
)
def test_a_step_of_a_move_waits_for_what_it_needs(name: str, row: Row, live: tuple[int, ...]) -> None:
    assert outcomes(name, row, view(*live)) == ()


def test_the_leader_inside_the_target_stays_or_is_the_first_in_the_targets_order() -> None:
    caught_up = led(5, 6, 1, 4, 5, assignment=MOVING)
    assert results("B3", caught_up, view(1, 4, 5, 6)) == []
    assert results("B3", caught_up, view(1, 4, 6)) == [(MOVING.replicas, 4, caught_up.isr, 1)]
    assert results("B3", caught_up, view(1, 6)) == [(MOVING.replicas, 6, caught_up.isr, 1)]


@pytest.mark.parametrize(
    ("target", "replicas", "adding", "removing"),
    [
        ((4, 2), (4, 2, 1, 3), (4,), (1, 3)),
        ((3, 2, 1), (3, 2, 1), (), ()),
        ((1,), (1, 2, 3), (), (2, 3)),
    ],
)
def test_a_target_is_stored_before_the_rest_of_the_original(
    target: tuple[int, ...], replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]
) -> None:
    [row] = outcomes("U1", led(1, 1), view(1, 4, asked=Asked(targets=(target,))))
    assert row == led(1, 1, assignment=ReplicaAssignment(replicas, adding, removing)).led(3)


def test_a_target_may_be_a_broker_with_a_failed_log_directory() -> None:
    [row] = outcomes("U1", led(1, 1), view(1, b4=LOGLESS, asked=Asked(targets=((4,),))))
    assert row.assignment == ReplicaAssignment((4, 1, 2, 3), (4,), (1, 2, 3))


def test_a_target_that_is_empty_or_double_or_adds_a_dead_broker_is_refused() -> None:
    assert outcomes("U1", led(1, 1), view(1, asked=Asked(targets=((1, 4), (), (1, 1))))) == ()


def test_an_override_takes_what_it_abandons_out_of_the_isr_and_keeps_a_leader_that_stays() -> None:
    seen = view(1, 2, 3, 4, 7, asked=Asked(targets=((7, 1),)))
    [row] = outcomes("U1", led(1, 4, 1, 2, assignment=MOVING), seen)
    assert brief(row) == ((7, 1, 2, 3), 1, (1, 2), 1)
    [row] = outcomes("U1", led(4, 4, 2, 1, assignment=MOVING), seen)
    assert brief(row) == ((7, 1, 2, 3), 1, (2, 1), 1)


def test_a_cancel_without_a_survivor_is_refused() -> None:
    assert outcomes("U1", led(4, 4, 1, assignment=MOVING), view(4, 2, asked=Asked(targets=((1, 2, 3),)))) == ()


def test_a_cancel_that_would_leave_too_few_members_is_a_move_back() -> None:
    seen = View(3, "AlterPartitionReassignments", {1: LIVE, 4: LIVE}, Asked(targets=((1, 2, 3),)), min_isr=2)
    [row] = outcomes("U1", led(4, 4, 1, assignment=MOVING), seen)
    assert row.assignment == ReplicaAssignment((1, 2, 3, 4), (), (4,))
    assert brief(row)[1:] == (4, (4, 1), 1)


# --- what is due ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "seen", "text"),
    [
        (led(-1, 3, 2), view(2, 3), "broker 2 should lead it"),
        (led(1, 1, 3), view(2, 3), "broker 3 should lead it"),
        (led(2, 1, 2), view(2, 3), "brokers [1] should have left its ISR"),
        (led(2, 1, 2), view(1, 2), None),
        (led(-1, 1), view(2, 3), None),
        (led(1, 1, 2), view(2, b1=LEAVING), None),
        (led(1, 1, 2), view(2, b1=LOGLESS), "broker 2 should lead it"),
        (led(1, 1, 2), view(2, b1=UNFIT), "broker 2 should lead it"),
        (led(2, 1, 2), view(2, b1=STUCK), "brokers [1] should have left its ISR"),
        (led(2, 1, 2), view(2, b1=UNFIT), None),
        (led(1, 1, 2), view(b1=UNFIT, b2=UNFIT), None),
        (led(2, 1, 2), view(2, b1=LOGLESS), "brokers [1] should have left its ISR"),
    ],
)
def test_what_is_due_at_the_end_of_an_event(row: Row, seen: View, text: str | None) -> None:
    assert due(row, seen) == text


@pytest.mark.parametrize(
    ("row", "live", "text"),
    [
        (led(1, 1, 4, 5, 6, assignment=MOVING), (1, 6), "its move should have ended"),
        (led(1, 1, 4, 5, 6, assignment=MOVING), (1, 2), None),
        (led(1, 1, 4, 5, assignment=MOVING), (1, 4, 5), None),
        (led(1, 1, 2, 3), (1, 2, 3), None),
    ],
)
def test_what_else_is_due_at_the_end_of_a_failover(row: Row, live: tuple[int, ...], text: str | None) -> None:
    assert due_at_failover(row, view(*live)) == text


# --- topics -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "event", "assignment", "is_allowed"),
    [
        ("grow", "CreatePartitions", ReplicaAssignment((2, 3, 4)), True),
        ("topics", "CreateTopics", ReplicaAssignment((2, 3, 4)), True),
        ("grow", "CreateTopics", ReplicaAssignment((2, 3, 4)), False),
        ("grow", "CreatePartitions", ReplicaAssignment((2, 3)), False),
        ("grow", "CreatePartitions", ReplicaAssignment((2, 3, 3)), False),
        ("grow", "CreatePartitions", ReplicaAssignment((2, 3, 5)), False),
        ("grow", "CreatePartitions", MOVING, False),
        ("U1", "CreatePartitions", ReplicaAssignment((2, 3, 4)), False),
    ],
)
def test_partitions_are_added_on_live_brokers_with_the_topics_factor(
    name: str, event: str, assignment: ReplicaAssignment, *, is_allowed: bool
) -> None:
    assert is_addition(name, Row(assignment), Row(PLAIN), view(1, 2, 3, 4, event=event)) is is_allowed


def test_a_topic_that_gets_its_id_keeps_its_partitions() -> None:
    row = led(1, 1, 2)
    assert outcomes("topics", row, view()) == (row,)


def test_other_rounds_change_nothing() -> None:
    assert outcomes("B7", led(1, 1, 2), view(1, 2)) == ()
