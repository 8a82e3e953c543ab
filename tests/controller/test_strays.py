"""Strays survive controllers and dead brokers until they are deleted."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.config import ControllerConfig
from controller.events import ReplicasNotDeleted, StrayDeletion
from controller.handlers import reassignments, strays
from controller.handlers.brokers import broker_change
from controller.handlers.deletion import RETRY_SECONDS
from controller.handlers.failover import failover
from controller.model.rounds import Change
from controller.node import alarms, dispatch
from tests.controller import deletions
from tests.controller.conftest import TP, Bench
from tests.controller.deletions import replica
from transport.errors import ErrorCode
from transport.host import Host
from transport.messages import ElectionType, ElectLeadersRequest, ElectLeadersResponse
from transport.metadata import EPOCH_DURING_DELETE, NO_LEADER
from transport.store import paths
from transport.store.limits import RequestLimits
from transport.store.protocol import Delete


async def shrink(bench: Bench) -> None:
    """Move from {1,2,3} to {1}."""
    await bench.register(1, 2, 3)
    await bench.write_topic("orders", (1, 2, 3))
    await bench.run(failover(bench.context, iter(())))
    await bench.run(reassignments.begin(bench.context, {TP: (1,)}))


@pytest.mark.requirement("A6")
async def test_removed_replicas_are_strays_until_their_brokers_answer(bench: Bench) -> None:
    await shrink(bench)
    assert await deletions.strays(bench) == [replica(2), replica(3)]
    await bench.run(strays.deleted(bench.context, [(replica(2), EPOCH_DURING_DELETE)]))
    assert await deletions.strays(bench) == [replica(3)]
    assert list(bench.context.strays) == [replica(3)]


@pytest.mark.requirement("A6")
async def test_a_record_that_another_process_removed_is_forgotten_and_keeps_no_other(bench: Bench) -> None:
    await shrink(bench)
    await bench.store.multi([Delete(paths.stray(replica(2)))])
    await bench.run(strays.deleted(bench.context, [(replica(n), EPOCH_DURING_DELETE) for n in (2, 3)]))
    assert await deletions.strays(bench) == []
    assert not bench.context.strays


@pytest.mark.requirement("A6")
@pytest.mark.parametrize(
    ("limits", "room"),
    [
        (RequestLimits(operations=1), 1),
        (RequestLimits(operations=2), 2),
        (RequestLimits(max_buffer=2 * len(paths.stray(replica(2)))), 1),
    ],
)
async def test_records_are_removed_in_as_few_requests_as_have_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, limits: RequestLimits, room: int
) -> None:
    await shrink(bench)
    monkeypatch.setattr(ControllerConfig, "request_limits", limits)
    steps = strays.deleted(bench.context, [(replica(n), EPOCH_DURING_DELETE) for n in (2, 3)])
    removal = next(steps)
    assert isinstance(removal, Change)
    assert [len(step.writes) for step in removal.steps] == [room] * (2 // room)


@pytest.mark.requirement("A8")
async def test_the_next_controller_tells_them_again(bench: Bench) -> None:
    await shrink(bench)
    bench.seen.published.clear()
    await bench.fail_over()
    assert bench.seen.stopped(delete=True) == {2, 3}


async def test_a_broker_that_was_dead_is_told_when_it_starts(bench: Bench) -> None:
    await shrink(bench)
    await bench.unregister(3)
    await bench.run(broker_change(bench.context))
    bench.seen.published.clear()
    await bench.register(3)
    await bench.run(broker_change(bench.context))
    assert bench.seen.stopped(delete=True) == {3}


async def test_a_stray_that_is_wanted_again_is_none(bench: Bench) -> None:
    await shrink(bench)
    await bench.run(reassignments.begin(bench.context, {TP: (1, 2)}))
    assert await deletions.strays(bench) == [replica(3)]
    bench.seen.published.clear()
    await bench.fail_over()
    assert bench.seen.stopped(delete=True) == {3}


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_replica_that_is_wanted_again_leads_uncleanly_once_its_broker_has_answered(
    bench: Bench, *, is_deleted: bool
) -> None:
    """The order to delete the replica is on its way; as a leader it would lose its data and begin with nothing."""
    bench.context.config = evolve(bench.context.config, unclean_leader_election_enable=True)
    await shrink(bench)
    obeyed = bench.context.leadership[TP].leader_epoch
    await bench.run(reassignments.begin(bench.context, {TP: (2,)}))
    await bench.kill(1)
    assert bench.context.leadership[TP].leader == NO_LEADER
    answer = deletions.obeyed(replica(2), epoch=obeyed) if is_deleted else ReplicasNotDeleted((replica(2),))
    await bench.run(dispatch.rounds_for(bench.context, answer, Host()))
    assert (bench.context.leadership[TP].leader, bench.context.strays.recalled) == (2, {})


async def test_who_asks_for_an_unclean_election_hears_what_it_waits_for(bench: Bench) -> None:
    await shrink(bench)
    await bench.run(reassignments.begin(bench.context, {TP: (2,)}))
    await bench.kill(1)
    [result] = (await bench.ask(ElectLeadersRequest(ElectionType.UNCLEAN, (TP,)), ElectLeadersResponse)).partitions
    assert result.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert "about to be deleted on brokers [2]" in result.message


async def test_a_broker_that_starts_anew_obeys_no_order_from_before(bench: Bench) -> None:
    await shrink(bench)
    await bench.run(reassignments.begin(bench.context, {TP: (2,)}))
    assert list(bench.context.strays.recalled) == [(TP, 2)]
    await bench.kill(2)
    assert not bench.context.strays.recalled


async def test_a_late_answer_about_an_earlier_replica_leaves_the_stray(bench: Bench) -> None:
    await shrink(bench)
    obeyed_first = bench.context.leadership[TP].leader_epoch
    await bench.move(TP, (1, 2, 3))
    await bench.move(TP, None)
    assert replica(3) in await deletions.strays(bench)
    await bench.run(strays.deleted(bench.context, [(replica(3), obeyed_first)]))
    assert replica(3) in await deletions.strays(bench)
    await bench.run(strays.deleted(bench.context, [(replica(3), bench.context.leadership[TP].leader_epoch)]))
    assert replica(3) not in await deletions.strays(bench)


async def test_an_answer_about_no_stray_changes_nothing(bench: Bench) -> None:
    await shrink(bench)
    await bench.run(strays.deleted(bench.context, [(replica(7), EPOCH_DURING_DELETE)]))
    assert await deletions.strays(bench) == [replica(2), replica(3)]


def test_names_of_strays_go_both_ways_and_others_are_none() -> None:
    assert paths.parse_stray(paths.stray(replica(2)).rpartition("/")[2]) == replica(2)
    assert paths.parse_stray("x:y:z") is None
    assert paths.parse_stray("id:topic:zero:1") is None


async def test_a_live_broker_that_failed_is_told_again_after_a_while(bench: Bench) -> None:
    await shrink(bench)
    failure = ReplicasNotDeleted((replica(2),))
    await bench.handle(failure)
    assert await deletions.strays(bench) == [replica(2), replica(3)]
    assert alarms.alarms(bench.context, failure) == [(RETRY_SECONDS, StrayDeletion())]
    bench.seen.published.clear()
    await bench.handle(StrayDeletion())
    assert bench.seen.stopped(delete=True) == {2, 3}
    await bench.run(strays.deleted(bench.context, [(replica(2), EPOCH_DURING_DELETE)]))
    assert alarms.alarms(bench.context, failure) == []


@pytest.mark.requirement("C4")
async def test_a_replica_whose_order_was_answered_before_it_is_wanted_again_may_lead_uncleanly(bench: Bench) -> None:
    """Its broker has failed to delete it, and no order is on its way until it is told again."""
    bench.context.config = evolve(bench.context.config, unclean_leader_election_enable=True)
    await shrink(bench)
    await bench.run(dispatch.rounds_for(bench.context, ReplicasNotDeleted((replica(2),)), Host()))
    await bench.run(reassignments.begin(bench.context, {TP: (2,)}))
    assert not bench.context.strays.recalled
    await bench.kill(1)
    assert bench.context.leadership[TP].leader == 2


@pytest.mark.requirement("C4")
async def test_a_replica_that_was_told_again_is_waited_for(bench: Bench) -> None:
    await shrink(bench)
    await bench.run(dispatch.rounds_for(bench.context, ReplicasNotDeleted((replica(2),)), Host()))
    await bench.run(dispatch.rounds_for(bench.context, StrayDeletion(), Host()))
    await bench.run(reassignments.begin(bench.context, {TP: (2,)}))
    assert list(bench.context.strays.recalled) == [(TP, 2)]


@pytest.mark.requirement("C4")
async def test_a_replica_that_failed_once_and_was_abandoned_again_is_waited_for(bench: Bench) -> None:
    """The failure was about an earlier order: that of the cancellation is on its way."""
    await shrink(bench)
    await bench.handle(ReplicasNotDeleted((replica(2),)))
    await bench.move(TP, (2,))
    assert not bench.context.strays.recalled
    await bench.move(TP, None)
    await bench.move(TP, (2,))
    assert list(bench.context.strays.recalled) == [(TP, 2)]
