"""The latest decisions: what is kept of an event, how many are kept, and which are told as one."""

from __future__ import annotations

from typing import Any

from controller.events import BrokerChange, ControllerEvent, TopicChange, TopicDeletion
from controller.model import facts
from controller.node import dispatch
from controller.observation.decisions import MAX_DECISIONS, MAX_EXAMPLES, Assigned, Decision, Decisions, Led, OfTopic
from controller.observation.event_log import EventLog
from tests.controller.conftest import HOST, TP, Bench
from transport.messages import AlterPartitionReassignmentsRequest, ReassignablePartition
from transport.store import paths
from transport.store.protocol import Create


def log_of(bench: Bench) -> EventLog:
    log = EventLog(Decisions(lambda: 1234))
    bench.runner.instrument = log
    return log


async def process(bench: Bench, log: EventLog, event: ControllerEvent) -> Decision:
    log.started(event, 0)
    await bench.runner.run(event.name, dispatch.rounds_for(bench.context, event, HOST), log.event_id)
    log.finished(event, 0.25)
    return log.decisions.latest()[0]


async def test_an_election_is_kept_with_what_was_before(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    before = bench.context.leadership[TP]
    await bench.unregister(1)
    decision = await process(bench, log_of(bench), BrokerChange())
    assert (decision.event_id, decision.event, decision.time_ms, decision.seconds) == (
        "0-1",
        "BrokerChange",
        1234,
        0.25,
    )
    assert decision.brokers == {"brokers_gone": [1]}
    assert decision.examples == (Led(TP, "leave", before, bench.context.leadership[TP]),)


async def test_a_move_is_kept_with_both_assignments(bench: Bench) -> None:
    await bench.start((1, 2), (2, 1), brokers=(1, 2, 3))
    log = log_of(bench)
    log.started(BrokerChange(), 0)
    before = bench.context.assignment(TP)
    await bench.ask(AlterPartitionReassignmentsRequest((ReassignablePartition(*TP, (3, 2)),)), object)
    log.finished(BrokerChange(), 0)
    [decision] = log.decisions.latest()
    [assigned] = [example for example in decision.examples if isinstance(example, Assigned)]
    assert (assigned.tp, assigned.before, assigned.after) == (TP, before, bench.context.assignment(TP))


async def test_topics_that_come_and_go_are_kept_by_name(bench: Bench) -> None:
    await bench.start(brokers=(1,))
    log = log_of(bench)
    await bench.write_topic("orders", (1,), (1,))
    created = await process(bench, log, TopicChange())
    assert created.examples[0] == OfTopic("orders", facts.TopicWritten, 2)
    await bench.store.multi([Create(paths.delete_topic("orders"))])
    deleted = await process(bench, log, TopicDeletion())
    assert OfTopic("orders", facts.DeletionStarted) in deleted.examples


async def test_of_many_changes_a_few_are_kept(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * 20, brokers=(1, 2))
    await bench.unregister(1)
    decision = await process(bench, log_of(bench), BrokerChange())
    assert len(decision.examples) == MAX_EXAMPLES
    assert decision.changes["leaders"] == 20


async def test_an_event_without_changes_is_no_decision(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    log = log_of(bench)
    log.started(BrokerChange(), 0)
    log.finished(BrokerChange(), 0)
    assert log.decisions.latest() == ()


def made(number: int, event: str = "AlterPartition", **more: Any) -> Decision:
    led = Led(TP, str(number), None, None)  # type: ignore[arg-type]
    return Decision(f"1-{number}", event, number, 1.0, changes={"isrs": number}, examples=(led,), **more)


def test_the_oldest_make_room() -> None:
    decisions = Decisions(lambda: 0)
    for number in range(2 * MAX_DECISIONS):
        decisions.add(made(number, event=f"Event{number}"))
    kept = [decision.time_ms for decision in decisions.latest()]
    assert kept == list(range(2 * MAX_DECISIONS - 1, MAX_DECISIONS - 1, -1))
    assert decisions.recorded == 2 * MAX_DECISIONS


def test_alike_ones_in_a_row_are_one() -> None:
    decisions = Decisions(lambda: 0)
    for number in range(1, 11):
        decisions.add(made(number))
    [one] = decisions.latest()
    assert (one.event_id, one.count, one.seconds, one.changes) == ("1-10", 10, 10.0, {"isrs": 55})
    assert [example.round for example in one.examples if isinstance(example, Led)] == ["10", "9", "8", "7", "6"]


def test_those_that_name_brokers_or_a_cause_stay_apart() -> None:
    decisions = Decisions(lambda: 0)
    for number in range(3):
        decisions.add(made(number, brokers={"brokers_gone": [number]}))
    for number in range(3):
        decisions.add(made(number, caused_by="1-0"))
    assert [decision.count for decision in decisions.latest()] == [1] * 6
