"""Deletions of replicas: only replicas that were given up may be deleted."""

from __future__ import annotations

import pytest
import trio

from simulator.safety.registrations import STALE_SECONDS
from tests.simulation.histories import FIRST, MOVING, History, topic_of_the_same_name, whole_move
from transport.metadata import EPOCH_DURING_DELETE, ReplicaAssignment
from transport.store import paths
from transport.store.protocol import Create, Delete

pytestmark = pytest.mark.usefixtures("autojump_clock")


async def test_a_replica_is_deleted_after_b4(h: History) -> None:
    whole_move(h)
    h.order_deletion(1)
    h.delete(1)
    assert h.found is None


async def test_a_stray_is_deleted_though_the_partition_lost_its_leader_since(h: History) -> None:
    whole_move(h)
    h.bump(leader=-1)
    h.order_deletion(1)
    h.delete(1)
    assert h.found is None


async def test_a_member_of_the_isr_that_is_deleted_is_seen(h: History) -> None:
    h.order_deletion(1)
    h.delete(1)
    assert "broker 1 deleted orders-0, which no controller had given up" in (h.found or "")


async def test_a_replica_that_left_the_isr_for_want_of_life_is_not_given_up(h: History) -> None:
    h.bump(isr=(1, 2))
    h.order_deletion(3)
    h.delete(3)
    assert "broker 3 deleted orders-0, which no controller had given up" in (h.found or "")


@pytest.mark.parametrize("dead", [True, False])
async def test_only_a_live_leader_lets_a_replica_be_given_up(h: History, *, dead: bool) -> None:
    if dead:
        h.expire(4)
    await trio.sleep(STALE_SECONDS + 1)
    whole_move(h)
    h.order_deletion(1)
    h.delete(1)
    assert ("broker 1 deleted orders-0" in (h.found or "")) == dead


async def test_a_controller_may_not_know_yet_that_a_leader_died(h: History) -> None:
    h.expire(4)
    await trio.sleep(1)
    whole_move(h)
    h.order_deletion(1)
    h.delete(1)
    assert h.found is None


async def test_a_leader_that_comes_back_lets_a_replica_be_given_up(h: History) -> None:
    h.expire(4)
    await trio.sleep(STALE_SECONDS + 1)
    whole_move(h)
    h.register(4)
    h.order_deletion(1)
    h.delete(1)
    assert h.found is None


async def test_a_leader_outside_the_target_lets_nobody_be_given_up(h: History) -> None:
    h.write(assignment=MOVING)
    h.bump()
    h.grow(1, 2, 3, 4, 5, 6)
    h.bump(isr=(1, 4, 5, 6))
    h.order_deletion(2)
    h.delete(2)
    assert "broker 2 deleted orders-0, which no controller had given up" in (h.found or "")


async def test_an_override_abandons_adding_replicas_while_ors_leads(h: History) -> None:
    h.write(assignment=MOVING)
    h.grow(1, 2, 3, 4)
    h.bump(assignment=ReplicaAssignment((5, 1, 2, 3), (5,), (1, 2, 3)), isr=(1, 2, 3))
    h.order_deletion(4)
    h.delete(4)
    assert h.found is None


@pytest.mark.parametrize("late", [True, False])
async def test_a_replica_that_is_wanted_again_is_deleted_by_a_late_order_only(h: History, *, late: bool) -> None:
    whole_move(h)
    if late:
        h.order_deletion(1)
    h.write(assignment=ReplicaAssignment((4, 5, 6, 1), (1,)))
    h.bump()
    if not late:
        h.order_deletion(1)
    h.delete(1)
    assert ("given up at leader epoch 3: it was ordered to at leader epochs [4]" in (h.found or "")) != late


async def test_a_replica_that_came_back_into_the_isr_is_not_given_up_any_more(h: History) -> None:
    whole_move(h)
    h.order_deletion(1)
    h.write(assignment=ReplicaAssignment((4, 5, 6, 1), (1,)))
    h.grow(4, 5, 6, 1)
    h.delete(1)
    assert "broker 1 deleted orders-0, which no controller had given up" in (h.found or "")


async def test_the_data_of_a_topic_that_is_gone_may_be_deleted(h: History) -> None:
    h.delete(1, "an earlier id")
    topic_of_the_same_name(h)
    h.delete(1)
    assert h.found is None


@pytest.mark.parametrize(
    ("is_marked", "epoch", "may_go"),
    [(True, EPOCH_DURING_DELETE, True), (True, 0, False), (False, EPOCH_DURING_DELETE, False)],
)
async def test_of_a_topic_that_is_marked_all_goes_by_orders_that_say_so(
    h: History, *, is_marked: bool, epoch: int, may_go: bool
) -> None:
    if is_marked:
        h.commit(FIRST, Create(paths.delete_topic("orders")))
    h.order_deletion(1, epoch)
    h.delete(1)
    assert (h.found is None) is may_go


async def test_a_marker_that_is_gone_counts_no_more(h: History) -> None:
    h.commit(FIRST, Create(paths.delete_topic("orders")))
    h.commit(FIRST, Delete(paths.delete_topic("orders")))
    h.order_deletion(1, EPOCH_DURING_DELETE)
    h.delete(1)
    assert "broker 1 deleted orders-0" in (h.found or "")


async def test_what_was_acknowledged_of_a_topic_that_is_marked_may_be_lost(h: History) -> None:
    h.append((1, 2, 3), b"a", b"b")
    h.acknowledge(0, b"a", b"b")
    h.commit(FIRST, Create(paths.delete_topic("orders")))
    h.truncate(2, 0)
    h.acknowledge(2, b"c")
    h.bump(leader=2)
    h.append((2,), b"x")
    assert h.found is None
    assert h.safety.lost() == []
