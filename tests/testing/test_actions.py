"""The actions of tests and scenarios on a cluster, and their expectations, with public names of Klamm only."""

from __future__ import annotations

import pytest
import trio

from klamm import ApiError, ErrorCode
from klamm.testing import open_cluster, run_scenario
from klamm.testing.actions import (
    AddPartitions,
    AtCommit,
    CannotBeDone,
    ChangeEndpoint,
    Crash,
    CrashOnArrival,
    CreateTopic,
    CreateTopics,
    Damage,
    DeleteTopic,
    Expire,
    FailDisk,
    HoldQueue,
    KeepOutOfIsr,
    MarkForDeletion,
    Pause,
    Produce,
    ReleaseQueue,
    Start,
    Wake,
    lose_answer,
)
from transport.messages import AlterPartitionReassignmentsRequest

pytestmark = pytest.mark.usefixtures("autojump_clock")


def test_a_scenario_adds_partitions() -> None:
    scenario = """
        topics: {orders: [[1, 2, 3]]}
        events:
          - add_partitions: {orders: 3}
          - expect: {orders-2: {leader: [1, 2, 3]}}
            within: 5s
        """
    assert run_scenario(scenario) == []


async def test_a_test_adds_partitions() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2, 3]])
        await AddPartitions({"orders": 3}).on(c)
        await c.until(lambda: c.partition("orders-2") is not None)


async def test_words_mean_who_they_mean_now() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[2, 3]])
        await c.until(lambda: c.partition("orders-0") is not None)
        Crash("leader of orders-0", noticed=True).on(c)
        Pause("controller").on(c)
        frozen = [process.id for process in c.processes() if process.state.value == "paused"]
        assert c.process(2).state.value == "dead"
        assert frozen == [c.active_controller]
        Start((1, 2)).on(c)
        assert c.process(2).state.value == "running"


async def test_an_action_about_nobody_cannot_be_done() -> None:
    async with open_cluster() as c:
        with pytest.raises(CannotBeDone, match="no node is 'leader of orders-0' now"):
            Crash("leader of orders-0").on(c)


# --- one replica, one queue, one commit -------------------------------------------------------------------------


def test_a_broker_fetches_one_partition_no_more() -> None:
    scenario = """
        cluster: {replica_lag_time: 2s, fetch_wait: 500ms}
        topics: {orders: [[1, 2, 3], [1, 2, 3]]}
        load: 10
        events:
          - stop_fetching: {2: orders-0}
            expect: {orders-0: {isr: [1, 3]}}
            within: 10s
          - expect: {orders-1: {isr: [1, 2, 3]}}
          - restart: 2
          - after: 10s
            expect: {orders-0: {isr: [1, 3]}, orders-1: {isr: [1, 2, 3]}}
          - resume_fetching: {2: orders-0}
            expect: {orders-0: {isr: [1, 2, 3]}}
            within: 10s
        """
    assert run_scenario(scenario) == []


def test_an_idle_follower_is_kept_out_of_the_isr() -> None:
    scenario = """
        topics: {orders: [[1, 2, 3], [1, 2, 3]]}
        events:
          - keep_out_of_isr: {orders-0: [2]}
            expect: {orders-0: {isr: [1, 3]}}
            within: 10s
          - crash: 1
            expect: {orders-0: {leader: 3, isr: [3]}, orders-1: {isr: [2, 3]}}
            within: 30s
          - keep_out_of_isr: {orders-0: []}
            expect: {orders-0: {isr: [2, 3]}}
            within: 10s
        """
    assert run_scenario(scenario) == []


@pytest.mark.parametrize("ids", [(0, 7, 1000), (200, 5)], ids=["zero, a gap and over 100", "any order"])
async def test_brokers_have_ids_of_ones_choice(ids: tuple[int, ...]) -> None:
    async with open_cluster(broker_ids=ids) as c:
        await c.create_topic("orders", [ids])
        await Produce({"orders-0": 3}).on(c)
        Crash(ids[0], noticed=True).on(c)
        await c.until(lambda: (state := c.partition("orders-0")) is not None and state.leader == ids[1])
        await c.settle()


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ((1, 101), "broker id 101 is reserved: 101 to 199 are controllers"),
        ((1, 1), "one or more different numbers"),
        ((), "one or more different numbers"),
    ],
)
async def test_impossible_ids_are_refused(ids: tuple[int, ...], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        async with open_cluster(broker_ids=ids):
            pass
    with pytest.raises(ValueError, match=text):
        run_scenario(f"cluster: {{broker_ids: {list(ids)}}}")


@pytest.mark.parametrize("keeps_session", [True, False])
async def test_a_paused_broker_keeps_its_session_or_loses_it(keeps_session: bool) -> None:
    async with open_cluster() as c:
        Pause(1, keeps_session=keeps_session).on(c)
        await trio.sleep(60)
        assert (1 in c.durable.brokers()) is keeps_session
        Wake(1).on(c)
        await trio.sleep(10)
        assert 1 in c.durable.brokers()


async def test_a_pause_after_one_with_the_session_alive_ends_the_session() -> None:
    async with open_cluster() as c:
        Pause(1, keeps_session=True).on(c)
        Wake(1).on(c)
        Pause(1).on(c)
        await trio.sleep(60)
        assert 1 not in c.durable.brokers()


async def test_events_wait_while_the_queue_is_held() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2]])
        await c.until(lambda: c.partition("orders-0") is not None)
        HoldQueue("controller").on(c)
        Crash(1, noticed=True).on(c)
        await trio.sleep(60)
        held = c.partition("orders-0")
        ReleaseQueue("controller").on(c)
        await c.until(lambda: (state := c.partition("orders-0")) is not None and state.leader == 2)
        assert held is not None
        assert held.leader == 1


def test_a_held_queue_is_released_in_the_end() -> None:
    assert run_scenario("events: [{hold_queue: controller}]") == []


@pytest.mark.parametrize("applied", [True, False])
async def test_the_answer_to_a_named_commit_is_lost(applied: bool) -> None:
    async with open_cluster() as c:
        lose_answer("controller", applied=applied, path="/brokers/topics/second").on(c)
        await CreateTopics((CreateTopic("first", ((1,),)), CreateTopic("second", ((1,),)))).on(c)
        texts = [entry.text() for entry in c.trace.entries if entry.kind in {"commit", "fault"}]
        [lost] = [place for place, text in enumerate(texts) if "loses the store" in text]
        commits = [place for place, text in enumerate(texts) if "'/brokers/topics/second'" in text]
        assert any("'/brokers/topics/first'" in text for text in texts[:lost])
        assert (commits[0] == lost - 1) is applied
        assert (commits[0] > lost) is not applied


async def test_a_controller_crashes_once_a_rounds_requests_have_arrived() -> None:
    async with open_cluster() as c:
        first = c.active_controller
        CrashOnArrival("create", brokers=(2, 3)).on(c)
        await CreateTopics((CreateTopic("orders", ((2, 3),)),)).on(c)
        await c.until(lambda: c.active_controller not in {first, None})
        texts = [entry.text() for entry in c.trace.entries if entry.kind in {"frame", "fault"}]
        [crash] = [place for place, text in enumerate(texts) if f"controller-{first}" in text and "crashes" in text]
        for broker in (2, 3):
            requests = [text for text in texts[:crash] if f"controller-{first}>broker-{broker}" in text]
            assert any("orders" in text for text in requests)
        await c.settle()


@pytest.mark.parametrize("noticed", [True, False])
async def test_a_broker_notices_a_failed_directory_by_itself(noticed: bool) -> None:
    async with open_cluster() as c:
        await CreateTopics((CreateTopic("orders", ((1, 2),)),)).on(c)
        FailDisk(1, directory=0, noticed=noticed).on(c)
        await trio.sleep(60)
        state = c.partition("orders-0")
        assert state is not None
        # Nobody writes, so the broker does not use the directory.
        assert state.leader == (2 if noticed else 1)
        await c.settle()


async def test_a_running_broker_gets_another_endpoint() -> None:
    async with open_cluster() as c:
        await CreateTopics((CreateTopic("orders", ((2, 3),)),)).on(c)
        epoch = c.durable.brokers()[2].epoch
        ChangeEndpoint(2).on(c)

        def known_ports() -> set[int]:
            handles = [broker.handle for broker in c.brokers.values()]
            endpoints = [handle.metadata.broker(2) for handle in handles if handle is not None]
            return {endpoint.port for endpoint in endpoints if endpoint is not None}

        await c.until(lambda: known_ports() == {9093}, within=5, what="the endpoint that everybody knows")
        # The follower fetches from there, or else this would never be acknowledged.
        await c.produce("orders-0", [b"paid"])
        state = c.partition("orders-0")
        assert state is not None
        assert (state.isr, state.leader_epoch, c.durable.brokers()[2].epoch) == ((2, 3), 0, epoch)
        Expire(2).on(c)
        await c.until(lambda: 2 in c.durable.brokers() and c.durable.brokers()[2].epoch > epoch)
        assert c.durable.brokers()[2].port == 9093
        await c.settle()


async def test_the_endpoint_of_a_dead_broker_cannot_be_changed() -> None:
    async with open_cluster() as c:
        Crash(2).on(c)
        with pytest.raises(CannotBeDone, match="broker 2 is not in service now"):
            ChangeEndpoint(2).on(c)


STATE = "/brokers/topics/orders/partitions/0/state"
DAMAGE = {
    "a topic": {"/brokers/topics/orders": "{"},
    "a state": {STATE: "[]"},
    "an absurd state": {
        STATE: '{"controller_epoch": 1, "leader": 3, "version": 1, "leader_epoch": 0, "isr": [1, 2]}',
    },
    "an ISR outside the replicas": {
        STATE: '{"controller_epoch": 1, "leader": 3, "version": 1, "leader_epoch": 9, "isr": [3]}',
    },
    "the settings of a topic": {"/config/topics/orders": '{"version": 1}'},
    "a broker": {"/brokers/ids/3": "no JSON"},
    "a broker that never was": {"/brokers/ids/9": "{}"},
    "a request": {"/admin/reassign_partitions": "[]"},
    "a notification": {"/isr_change_notification/isr_change_0000000099": "?"},
    "a stray": {"/klamm/strays/nonsense": ""},
}


@pytest.mark.parametrize("rows", DAMAGE.values(), ids=DAMAGE)
async def test_a_damaged_row_costs_nothing_but_itself(rows: dict[str, str]) -> None:
    async with open_cluster(brokers=3) as c:
        topics = (CreateTopic("orders", ((1, 2),)), CreateTopic("others", ((1, 2),)))
        await CreateTopics(topics).on(c)
        await Produce({"orders-0": 3, "others-0": 3}).on(c)
        Damage(rows).on(c)
        await trio.sleep(1)
        Crash("controller", noticed=True).on(c)
        Crash(1, noticed=True).on(c)
        await c.until(lambda: (state := c.partition("others-0")) is not None and state.leader == 2)
        await c.settle()
        await Produce({"others-0": 3}).on(c)


def test_what_every_invariant_rests_on_cannot_be_damaged() -> None:
    with pytest.raises(ValueError, match="/controller_epoch cannot be damaged: every invariant rests on it"):
        Damage({"/controller_epoch": "x"})
    with pytest.raises(ValueError, match="/controller cannot be damaged"):
        run_scenario("events: [{damage: {/controller: x}}]")


# --- settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [101, 102, 103])
async def test_the_first_controller_is_active(first: int) -> None:
    async with open_cluster(controllers=3, first_controller=first) as c:
        assert c.active_controller == first


def test_topics_cannot_be_deleted_where_that_is_disabled() -> None:
    scenario = """
        cluster: {delete_topic_enable: false}
        topics: {orders: [[1]]}
        events:
          - delete_topic: orders
            expect: {refused: TOPIC_DELETION_DISABLED}
        expect: {orders-0: {leader: 1}}
        """
    assert run_scenario(scenario) == []


async def test_a_controller_is_asked_once_without_retries() -> None:
    async with open_cluster(first_controller=101) as c:
        with pytest.raises(ApiError) as refusal:
            await c.ask(102, AlterPartitionReassignmentsRequest(()))
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER
        await c.ask(101, AlterPartitionReassignmentsRequest(()))


# --- what actions must not do -----------------------------------------------------------------------------------


@pytest.mark.parametrize("releases", [(), ("3.9",)], ids=["klamm", "kafka"])
async def test_a_replica_that_is_kept_out_and_leads_stays_in_its_isr(releases: tuple[str, ...]) -> None:
    async with open_cluster(releases=releases) as c:
        await c.create_topic("orders", [[1, 2, 3]])
        await c.until(lambda: c.partition("orders-0") is not None)
        KeepOutOfIsr({"orders-0": [1, 3]}).on(c)
        await c.until(lambda: (state := c.partition("orders-0")) is not None and state.isr == (1, 2))
        await trio.sleep(30)
        assert [proposal.isr for proposal in c.proposed_isrs("orders-0")] == [(1, 2)]
        await c.settle()


async def test_a_commit_that_only_checks_a_path_is_not_one_to_it() -> None:
    async with open_cluster() as c:
        first = c.active_controller
        AtCommit("controller", "after", (Crash(1),), "/controller_epoch").on(c)
        # Each commit of a controller checks the epoch, and only elections change it.
        await c.create_topic("orders", [[2, 3]])
        await c.until(lambda: c.partition("orders-0") is not None)
        assert c.process(1).state.value == "running"
        AtCommit("standby", "after", (Crash(2),), "/controller_epoch").on(c)
        Crash("controller", noticed=True).on(c)
        await c.until(lambda: c.active_controller not in {first, None})
        assert c.process(2).state.value == "dead"


@pytest.mark.parametrize("by_hand", [True, False])
async def test_a_marked_topic_stays_where_topics_cannot_be_deleted(*, by_hand: bool) -> None:
    async with open_cluster(delete_topic_enable=False) as c:
        await c.create_topic("orders", [[1, 2]])
        if by_hand:
            MarkForDeletion("orders").on(c)
        else:
            with pytest.raises(ApiError, match=r"delete\.topic\.enable=false"):
                await DeleteTopic("orders").on(c)
        await c.produce("orders-0", [b"paid"])
        await c.settle()
        assert (await c.dump_state())["delete_topics"] == []
        assert await c.consume("orders-0", up_to=1) == [b"paid"]
