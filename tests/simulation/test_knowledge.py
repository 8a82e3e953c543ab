"""The checks follow the knowledge of a controller from what it has read and received."""

from __future__ import annotations

from typing import Final

import pytest
import trio

from simulator.model.view import Standing
from simulator.safety.knowledge import Knowledge
from simulator.safety.log_reports import Incarnation, LogReport, OrdersInFlight
from simulator.safety.min_isrs import MinIsrs
from simulator.safety.requests import Requests
from simulator.store.durable import Durable
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionState,
    ReassignablePartition,
)
from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Op, Set, Stat, Znode
from transport.store.tree import Tree

LIVE, LEAVING, LOGLESS, DEAD = Standing.LIVE, Standing.LEAVING, Standing.LOGLESS, Standing.DEAD
STUCK, UNFIT = Standing.STUCK, Standing.UNFIT
TP: Final = TopicPartition("orders", 0)


def read(knowledge: Knowledge, *, storage: str | None = None, **epochs: int) -> None:
    """Let a controller read these brokers' registrations, by name: b1=7 is broker 1 at epoch 7."""
    brokers = {int(name[1:]): epoch for name, epoch in epochs.items()}
    knowledge.looked([paths.BROKER_IDS], [[str(id_) for id_ in brokers]])
    for id_, epoch in brokers.items():
        data = formats.encode_broker(BrokerRegistration(id_, "h", 1, epoch, storage_id=storage), 0)
        stat = Stat(czxid=epoch, mzxid=epoch, ctime_ms=0, mtime_ms=0, version=0, ephemeral_owner=1)
        knowledge.looked([paths.broker(id_)], [Znode(data, stat)])


def standings(knowledge: Knowledge, broker_id: int = 1) -> list[Standing]:
    return [view[broker_id] for view in knowledge.views(TP, [broker_id])]


def known(**epochs: int) -> Knowledge:
    knowledge = Knowledge()
    read(knowledge, storage=None, **epochs)
    knowledge.began_event()
    return knowledge


def test_a_controller_knows_nothing_before_it_reads() -> None:
    knowledge = known(b1=1)
    knowledge.took_office()
    assert knowledge.brokers is None


def test_a_single_registration_read_after_an_election_is_no_listing() -> None:
    knowledge = Knowledge()
    read(knowledge, b1=1)
    knowledge.took_office()
    data = formats.encode_broker(BrokerRegistration(1, "h", 1, 1), 0)
    stat = Stat(czxid=1, mzxid=1, ctime_ms=0, mtime_ms=0, version=0, ephemeral_owner=1)
    knowledge.looked([paths.broker(1)], [Znode(data, stat)])
    assert knowledge.brokers is None


def test_a_broker_is_live_as_long_as_it_was_read() -> None:
    knowledge = known(b1=1)
    assert (standings(knowledge), standings(knowledge, 2)) == ([LIVE], [DEAD])


def test_old_and_new_count_until_the_event_ends() -> None:
    knowledge = known(b1=1)
    read(knowledge, b2=5)
    assert (standings(knowledge), standings(knowledge, 2)) == ([LIVE, DEAD], [LIVE, DEAD])
    assert knowledge.began_event()
    assert (standings(knowledge), standings(knowledge, 2)) == ([DEAD], [LIVE])
    assert not knowledge.began_event()


def test_a_broker_that_came_back_was_gone_in_between() -> None:
    knowledge = known(b1=1)
    read(knowledge, b1=6)
    assert standings(knowledge) == [LIVE, DEAD]
    knowledge.began_event()
    assert standings(knowledge) == [LIVE]


def test_a_registration_alone_is_no_news_of_who_is_alive() -> None:
    knowledge = known(b1=1)
    knowledge.looked([paths.broker(1)], [None])
    assert standings(knowledge) == [LIVE]


def test_a_broker_that_asks_to_leave_may_be_leaving_and_is_once_that_is_granted() -> None:
    knowledge = known(b1=1)
    knowledge.asked_to_leave(1, 1)
    assert standings(knowledge) == [LIVE, LEAVING]
    knowledge.granted_shutdown()
    assert standings(knowledge) == [LEAVING]
    knowledge.took_office()
    read(knowledge, b1=1)
    assert standings(knowledge) == [LIVE, LEAVING]


def test_one_of_two_that_ask_to_leave_is_granted_it() -> None:
    knowledge = known(b1=1, b2=2)
    knowledge.asked_to_leave(1, 1)
    knowledge.asked_to_leave(2, 2)
    knowledge.granted_shutdown()
    assert (standings(knowledge), standings(knowledge, 2)) == ([LIVE, LEAVING], [LIVE, LEAVING])


def test_a_broker_that_comes_back_does_not_leave() -> None:
    knowledge = known(b1=1)
    knowledge.asked_to_leave(1, 1)
    knowledge.granted_shutdown()
    read(knowledge, b1=6)
    assert standings(knowledge) == [LIVE, LEAVING, DEAD]
    knowledge.began_event()
    assert standings(knowledge) == [LIVE]


def report(
    broker: Incarnation, failure: Standing | None, *, leads: bool = False, epoch: int = 0, topic_id: str = "id"
) -> LogReport:
    return LogReport(1, broker, TP, topic_id, leads, epoch, failure)


def take_over(knowledge: Knowledge, *, epoch: int = 0) -> None:
    knowledge.took_over_reports({TP: ("id", epoch)})


def test_a_report_counts_once_it_is_taken_over() -> None:
    knowledge = known(b1=1)
    knowledge.logs.reported(report((1, 1), LOGLESS))
    assert standings(knowledge) == [LIVE]
    take_over(knowledge)
    assert standings(knowledge) == [LOGLESS]
    knowledge.logs.reported(report((1, 1), None))
    take_over(knowledge)
    assert standings(knowledge) == [LIVE]


def test_a_replica_that_failed_to_lead_recovers_when_it_leads_or_is_forgiven() -> None:
    knowledge = known(b1=1, b2=2)
    for broker, forgive in (((1, 1), False), ((2, 2), True)):
        knowledge.logs.reported(report(broker, UNFIT, leads=True))
        take_over(knowledge)
        assert standings(knowledge, broker[0]) == [UNFIT]
        knowledge.logs.reported(report(broker, None))
        if forgive:
            knowledge.forgave([TP])
        else:
            knowledge.logs.reported(report(broker, None, leads=True))
            take_over(knowledge)
        assert standings(knowledge, broker[0]) == [LIVE]


def test_one_of_two_replicas_that_failed_to_lead_is_forgiven() -> None:
    knowledge = known(b1=1, b2=2)
    for broker in ((1, 1), (2, 2)):
        knowledge.logs.reported(report(broker, UNFIT, leads=True))
        take_over(knowledge)
    knowledge.forgave([TP])
    assert (standings(knowledge), standings(knowledge, 2)) == ([UNFIT, LIVE], [UNFIT, LIVE])
    knowledge.forgave([TP, TP])
    assert (standings(knowledge), standings(knowledge, 2)) == ([LIVE], [LIVE])


def test_an_order_of_an_earlier_epoch_ends_no_failure() -> None:
    knowledge = known(b1=1)
    knowledge.logs.reported(report((1, 1), STUCK))
    take_over(knowledge)
    knowledge.logs.reported(report((1, 1), None, epoch=1))
    take_over(knowledge, epoch=2)
    assert LIVE in standings(knowledge)
    assert STUCK in standings(knowledge)


def test_a_replica_that_failed_to_lead_is_still_unfit_once_it_follows_again() -> None:
    knowledge = known(b1=1)
    for failure in (UNFIT, STUCK, None):
        knowledge.logs.reported(report((1, 1), failure))
        take_over(knowledge)
    assert standings(knowledge) == [UNFIT]


def test_a_failed_log_is_that_of_one_incarnation_as_long_as_it_has_the_replica() -> None:
    knowledge = known(b1=1)
    knowledge.logs.reported(report((1, 1), LOGLESS))
    take_over(knowledge)
    knowledge.logs.left(TP, [2])
    assert standings(knowledge) == [LOGLESS]
    knowledge.logs.left(TP, [1])
    assert standings(knowledge) == [LIVE]


def test_a_broker_that_comes_back_can_use_its_logs() -> None:
    knowledge = known(b1=1)
    knowledge.logs.reported(report((1, 1), LOGLESS))
    take_over(knowledge)
    read(knowledge, b1=6)
    knowledge.began_event()
    assert standings(knowledge) == [LIVE]


def test_two_reports_leave_doubts_until_both_are_taken_over() -> None:
    knowledge = known(b1=1, b2=2)
    knowledge.logs.reported(report((1, 1), LOGLESS))
    knowledge.logs.reported(report((2, 2), STUCK))
    take_over(knowledge)
    assert (standings(knowledge), standings(knowledge, 2)) == ([LOGLESS, LIVE], [LIVE, STUCK])
    take_over(knowledge)
    assert (standings(knowledge), standings(knowledge, 2)) == ([LOGLESS], [STUCK])


def test_a_report_that_replaces_another_in_doubt_leaves_doubts() -> None:
    knowledge = known(b1=1, b2=2)
    knowledge.logs.reported(report((1, 1), LOGLESS))
    knowledge.logs.reported(report((2, 2), STUCK))
    take_over(knowledge)
    knowledge.logs.reported(report((1, 1), LOGLESS))
    take_over(knowledge)
    assert (LIVE in standings(knowledge), LIVE in standings(knowledge, 2)) == (True, True)


@pytest.mark.parametrize(
    "reports",
    [
        (report((1, 1), None),),
        (report((1, 1), LOGLESS, topic_id="of another topic"),),
        (),
    ],
)
def test_reports_that_do_not_tell_what_is_meant_leave_doubts(reports: tuple[LogReport, ...]) -> None:
    knowledge = known(b1=1, b2=2)
    for each in reports:
        knowledge.logs.reported(each)
    take_over(knowledge)
    assert {*standings(knowledge)} == {*standings(knowledge, 2)} == {LOGLESS, STUCK, UNFIT, LIVE}


@pytest.mark.parametrize(
    ("leader", "error", "failure"),
    [
        (1, ErrorCode.KAFKA_STORAGE_ERROR, LOGLESS),
        (1, ErrorCode.UNKNOWN_SERVER_ERROR, UNFIT),
        (2, ErrorCode.UNKNOWN_SERVER_ERROR, STUCK),
        (2, ErrorCode.NONE, None),
    ],
)
def test_only_answers_to_leader_and_isr_are_reports(leader: int, error: ErrorCode, failure: Standing | None) -> None:
    orders = OrdersInFlight()
    state = PartitionState.of(TP, "id", ReplicaAssignment((1, 2)), LeaderAndIsr(leader, 4, (1, 2), 0, 1))
    request = LeaderAndIsrRequest(101, 7, 3, (LeaderAndIsrPartition(state, is_new=False),))
    orders.ordered(5, 9, 1, request)
    assert (orders.request(5, 9), orders.request(5, 8), orders.request(4, 9)) == (request, None, None)
    answer = LeaderAndIsrResponse((PartitionError(*TP, error),))
    assert list(orders.answered(5, 9, answer)) == [LogReport(7, (1, 3), TP, "id", leader == 1, 4, failure)]
    assert orders.request(5, 9) is None


def test_a_stale_order_and_what_fails_on_a_kafka_broker_are_no_reports() -> None:
    state = PartitionState.of(TP, "id", ReplicaAssignment((1, 2)), LeaderAndIsr(1, 4, (1, 2), 0, 1))
    request = LeaderAndIsrRequest(101, 7, 3, (LeaderAndIsrPartition(state, is_new=False),))
    for are_kafkas, error in ((False, ErrorCode.FENCED_LEADER_EPOCH), (True, ErrorCode.UNKNOWN_SERVER_ERROR)):
        orders = OrdersInFlight(are_kafkas)
        orders.ordered(5, 9, 1, request)
        assert list(orders.answered(5, 9, LeaderAndIsrResponse((PartitionError(*TP, error),)))) == []


# --- requests ---------------------------------------------------------------------------------------------------


def test_a_request_may_wait_behind_many_others() -> None:
    requests = Requests()
    for broker_id in range(500):
        requests.received(AlterPartitionReassignmentsRequest((ReassignablePartition(*TP, (broker_id,)),)))
    assert len(requests.about(TP, []).targets) == 500


def test_a_cancel_asks_for_the_original_replicas() -> None:
    requests = Requests()
    assert requests.about(TP, [(1, 2)]).targets == ()
    requests.received(AlterPartitionReassignmentsRequest((ReassignablePartition(*TP, None),)))
    assert requests.about(TP, [(1, 2)]).targets == ((1, 2),)


# --- min.insync.replicas ----------------------------------------------------------------------------------------


class Settings:
    """Settings in a store, and the checks' knowledge of them."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.min_isrs = MinIsrs()
        parents = ("/config", paths.TOPIC_CONFIGS, paths.BROKER_CONFIGS)
        self.tree.multi([Create(path) for path in parents], 1, 0)

    def write(self, path: str, value: str | None, *, is_announced: bool = True) -> None:
        there = self.tree.read(path) is not None
        data = formats.encode_config({} if value is None else {"min.insync.replicas": value})
        op: Op = Set(path, data, -1) if there else Create(path, data)
        self._commit(op, is_announced=is_announced)

    def delete(self, path: str) -> None:
        self._commit(Delete(path), is_announced=True)

    def _commit(self, op: Op, *, is_announced: bool) -> None:
        self.tree.multi([op], 1, 0)
        self.min_isrs.committed([op], Durable(self.tree), is_announced=is_announced)


@pytest.mark.usefixtures("autojump_clock")
async def test_a_former_setting_may_be_in_use_for_a_while() -> None:
    settings, own = Settings(), paths.topic_config("orders")
    assert settings.min_isrs.of("orders") == (1,)
    settings.write(own, "2")
    assert settings.min_isrs.of("orders") == (2, 1)
    await trio.sleep(61)
    assert settings.min_isrs.of("orders") == (2,)
    settings.delete(own)
    await trio.sleep(61)
    assert settings.min_isrs.of("orders") == (1,)


@pytest.mark.usefixtures("autojump_clock")
async def test_a_topic_inherits_the_default() -> None:
    settings = Settings()
    settings.write(paths.broker_config(None), "3")
    await trio.sleep(61)
    assert settings.min_isrs.of("orders") == (3,)
    settings.write(paths.topic_config("orders"), "no number")
    assert settings.min_isrs.of("orders") == (3,)


@pytest.mark.usefixtures("autojump_clock")
async def test_a_setting_that_nobody_announced_may_never_be_known() -> None:
    settings = Settings()
    settings.write(paths.topic_config("orders"), "2", is_announced=False)
    await trio.sleep(1000)
    assert settings.min_isrs.of("orders") == (2, 1)


# --- brokers that lost their data -----------------------------------------------------------------------------------


def test_a_broker_is_kept_out_until_its_storage_is_recorded() -> None:
    recorded = {1: "old", 2: "new"}
    knowledge = Knowledge(storage_id=recorded.get)
    read(knowledge, storage="new", b1=1, b2=2, b3=3)
    knowledge.began_event()
    assert knowledge.emptied() == {1}
    assert set(standings(knowledge)) == {LIVE, DEAD}
    assert (standings(knowledge, 2), standings(knowledge, 3)) == ([LIVE], [LIVE])
    recorded[1] = "new"
    assert standings(knowledge) == [LIVE]
    assert knowledge.has_kept_out(1), "what was sent before may arrive late"
    assert not knowledge.has_kept_out(2)
    knowledge.took_office()
    assert not knowledge.has_kept_out(1)
