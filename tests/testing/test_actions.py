"""One vocabulary of actions: a scenario can do everything that a test can, and vice versa."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from klamm.testing import actions, open_cluster
from klamm.testing.actions import (
    AddPartitions,
    CannotBeDone,
    ChangeEndpoint,
    Crash,
    CrashOnArrival,
    CreateTopic,
    CreateTopics,
    Expire,
    FailDisk,
    HoldQueue,
    Pause,
    Produce,
    ReleaseQueue,
    Request,
    Start,
    Strike,
    Wake,
    lose_answer,
)
from simulator.process import ProcessState
from simulator.scenario.faults import ScenarioFault
from simulator.scenario.loader import parse
from simulator.scenario.runner import run
from simulator.scenario.verbs import VERBS
from simulator.settings import Settings
from transport.errors import ApiError, ErrorCode
from transport.messages import AlterPartitionReassignmentsRequest

ROOT = Path(__file__).parents[2]
BASES = {Strike, Request}
PARTS = {CreateTopics: "CreateTopic"}
"""Verbs for several topics at once, with the name of a test's action for one of them."""


def outcome_of(text: str) -> list[str]:
    """Run a scenario and return the expectations that it missed."""
    [scenario] = parse(text, "this.yaml")
    outcome = run(scenario)
    return [*(miss.text for miss in outcome.chronicle.misses), *([outcome.violation] if outcome.violation else [])]


def test_every_action_has_a_verb_and_every_verb_an_action() -> None:
    named = {value for name in actions.__all__ if isinstance(value := getattr(actions, name), type)}
    public = {kind for kind in named if issubclass(kind, Strike | Request)} - BASES
    assert {verb.kind.__name__ for verb in VERBS.values()} == {kind.__name__ for kind in public} - {*PARTS.values()}


def test_the_docs_list_every_verb_with_what_it_does() -> None:
    docs = " ".join((ROOT / "docs" / "testing.md").read_text(encoding="utf-8").split())
    lines = [f"- `{name}` (`{verb.kind.__name__}`): {verb.text}" for name, verb in VERBS.items()]
    assert [line for line in lines if line not in docs or not line.endswith(".")] == []


def test_a_scenario_adds_partitions() -> None:
    missed = outcome_of(
        """
        topics: {orders: [[1, 2, 3]]}
        events:
          - add_partitions: {orders: 3}
          - expect: {orders-2: {leader: [1, 2, 3]}}
            within: 5s
        """
    )
    assert missed == []


async def test_a_test_adds_partitions(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2, 3]])
        await AddPartitions({"orders": 3}).on(c)
        await c.until(lambda: c.partition("orders-2") is not None)


async def test_words_mean_who_they_mean_now(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        await c.create_topic("orders", [[2, 3]])
        await c.until(lambda: c.partition("orders-0") is not None)
        Crash("leader of orders-0", noticed=True).on(c)
        Pause("controller").on(c)
        frozen = [process.id for process in c.processes() if process.state is ProcessState.PAUSED]
        assert c.process(2).state is ProcessState.DEAD
        assert frozen == [c.active_controller]
        Start((1, 2)).on(c)
        assert c.process(2).state is ProcessState.RUNNING


async def test_an_action_about_nobody_cannot_be_done(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        with pytest.raises(CannotBeDone, match="nobody is 'leader of orders-0' now"):
            Crash("leader of orders-0").on(c)


# --- one replica, one queue, one commit -------------------------------------------------------------------------


def test_a_broker_fetches_one_partition_no_more() -> None:
    missed = outcome_of(
        """
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
    )
    assert missed == []


def test_an_idle_follower_is_kept_out_of_the_isr() -> None:
    missed = outcome_of(
        """
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
    )
    assert missed == []


@pytest.mark.parametrize("ids", [(0, 7, 1000), (200, 5)], ids=["zero, a gap and over 100", "any order"])
async def test_brokers_have_ids_of_ones_choice(autojump_clock: MockClock, ids: tuple[int, ...]) -> None:  # noqa: ARG001
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
def test_impossible_ids_are_refused(ids: tuple[int, ...], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Settings(broker_ids=ids)
    with pytest.raises(ScenarioFault, match=text):
        parse(f"cluster: {{broker_ids: {list(ids)}}}", "this.yaml")


@pytest.mark.parametrize("keeps_session", [True, False])
async def test_a_paused_broker_keeps_its_session_or_loses_it(
    autojump_clock: MockClock,  # noqa: ARG001
    keeps_session: bool,
) -> None:
    async with open_cluster() as c:
        Pause(1, keeps_session=keeps_session).on(c)
        await trio.sleep(60)
        assert (1 in c.durable.brokers()) is keeps_session
        Wake(1).on(c)
        await trio.sleep(10)
        assert 1 in c.durable.brokers()


async def test_a_pause_after_one_with_the_session_alive_ends_the_session(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        Pause(1, keeps_session=True).on(c)
        Wake(1).on(c)
        Pause(1).on(c)
        await trio.sleep(60)
        assert 1 not in c.durable.brokers()


async def test_events_wait_while_the_queue_is_held(autojump_clock: MockClock) -> None:  # noqa: ARG001
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
    assert outcome_of("events: [{hold_queue: controller}]") == []


@pytest.mark.parametrize("applied", [True, False])
async def test_the_answer_to_a_named_commit_is_lost(autojump_clock: MockClock, applied: bool) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        lose_answer("controller", applied=applied, path="/brokers/topics/second").on(c)
        await CreateTopics((CreateTopic("first", ((1,),)), CreateTopic("second", ((1,),)))).on(c)
        texts = [entry.text() for entry in c.trace.entries if entry.kind in {"commit", "fault"}]
        [lost] = [place for place, text in enumerate(texts) if "loses the store" in text]
        commits = [place for place, text in enumerate(texts) if "'/brokers/topics/second'" in text]
        assert any("'/brokers/topics/first'" in text for text in texts[:lost])
        assert (commits[0] == lost - 1) is applied
        assert (commits[0] > lost) is not applied


async def test_a_controller_crashes_once_a_rounds_requests_have_arrived(autojump_clock: MockClock) -> None:  # noqa: ARG001
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
async def test_a_broker_notices_a_failed_directory_by_itself(autojump_clock: MockClock, noticed: bool) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        await CreateTopics((CreateTopic("orders", ((1, 2),)),)).on(c)
        FailDisk(1, directory=0, noticed=noticed).on(c)
        await trio.sleep(60)
        state = c.partition("orders-0")
        assert state is not None
        # Nobody writes, so the broker does not use the directory.
        assert state.leader == (2 if noticed else 1)
        await c.settle()


async def test_a_running_broker_gets_another_endpoint(autojump_clock: MockClock) -> None:  # noqa: ARG001
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


async def test_the_endpoint_of_a_dead_broker_cannot_be_changed(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        Crash(2).on(c)
        with pytest.raises(CannotBeDone, match="broker 2 is not in service now"):
            ChangeEndpoint(2).on(c)


# --- settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [101, 102, 103])
async def test_the_first_controller_is_active(autojump_clock: MockClock, first: int) -> None:  # noqa: ARG001
    async with open_cluster(controllers=3, first_controller=first) as c:
        assert c.active_controller == first


def test_topics_cannot_be_deleted_where_that_is_disabled() -> None:
    missed = outcome_of(
        """
        cluster: {delete_topic_enable: false}
        topics: {orders: [[1]]}
        events:
          - delete_topic: orders
            expect: {refused: TOPIC_DELETION_DISABLED}
        expect: {orders-0: {leader: 1}}
        """
    )
    assert missed == []


async def test_a_controller_is_asked_once_without_retries(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster(first_controller=101) as c:
        with pytest.raises(ApiError) as refusal:
            await c.ask(102, AlterPartitionReassignmentsRequest(()))
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER
        await c.ask(101, AlterPartitionReassignmentsRequest(()))


# --- expectations -----------------------------------------------------------------------------------------------


STAYS = """
topics: {{orders: [[1, 2]]}}
events:
  - produce: {{orders-0: 5}}
    expect: {{records: {{orders-0: {records}}}, unclean: {unclean}}}
  - expect: {{orders-0: {{leader: 1}}}}
    stays: {stays}
  - at: 20s
    crash: 1
"""


@pytest.mark.parametrize(
    ("values", "missed"),
    [
        ({"records": 5, "unclean": 0, "stays": "19s"}, []),
        ({"records": 4, "unclean": 0, "stays": "19s"}, ["orders-0 has 5 records, expected 4"]),
        ({"records": 5, "unclean": 1, "stays": "19s"}, ["there were 0 unclean elections, expected 1"]),
        ({"records": 5, "unclean": 0, "stays": "60s"}, ["orders-0: leader is 2, expected 1"]),
    ],
    ids=["as expected", "records", "unclean elections", "does not stay"],
)
def test_records_unclean_elections_and_what_stays(values: dict[str, object], missed: list[str]) -> None:
    assert outcome_of(STAYS.format(**values)) == missed


PATH = """
topics: {{orders: [[1, 2, 3]]}}
events:
  - crash: {{nodes: 1, noticed: true}}
    expect: {{orders-0: {{leader: 2}}}}
    within: 5s
  - crash: {{nodes: 2, noticed: true}}
    expect: {{orders-0: {{leader: 3}}}}
    within: 5s
expect: {expect}
"""


@pytest.mark.parametrize(
    ("expect", "missed"),
    [
        ("{passes: {orders-0: [{leader: 1}, {leader: 2, isr: [2, 3]}, {leader: 3}]}}", []),
        (
            "{passes: {orders-0: [{leader: 2}, {leader: 3}, {leader: 2}]}}",
            ["orders-0 did not pass through state 3 of 3"],
        ),
        ("{never: {orders-0: {leader: 3, isr: [2, 3]}}}", []),
        ("{never: {orders-0: {leader: 3}}}", ["orders-0 was in a state that must never be"]),
    ],
    ids=["path", "another path", "never", "after all"],
)
def test_the_states_a_partition_passes_through(expect: str, missed: list[str]) -> None:
    assert outcome_of(PATH.format(expect=expect)) == missed
