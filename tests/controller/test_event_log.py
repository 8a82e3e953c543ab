"""The id of an event leads through log, state-change log and commit trace to the reason why a broker leads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, evolve, field
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from controller.events import BrokerChange, TopicChange
from controller.model.facts import LeadershipsWritten, PartitionsMoved
from controller.model.rounds import Step, apply
from controller.model.state_machines import PartitionPhase
from controller.monitoring.state_change_log import StateChangeLog
from controller.node import dispatch
from controller.node.service import ControllerService
from controller.observation.event_log import EventLog
from controller.observation.instruments import Instruments
from tests.controller.conftest import HOST, TP, Bench
from tests.kit.service import Controllers, until
from transport.messages import TracedCommit
from transport.metadata import BrokerRegistration, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, Delete, MetadataStore, ensure_paths

Logged = list[Any]


@define
class Lines:
    """The lines of a state-change log."""

    text: list[str] = field(factory=list)

    def of(self, change: str) -> list[dict[str, Any]]:
        return [line for line in map(json.loads, "\n".join(self.text).splitlines()) if line["change"] == change]


@contextmanager
def watched(bench: Bench) -> Iterator[tuple[EventLog, Lines, Logged]]:
    """Give the bench a log of events and one of state changes, and capture log lines as they would be printed."""
    events, lines = EventLog(), Lines()
    bench.runner.instrument = Instruments((events, StateChangeLog(lines.text.append, lambda: 0)))
    with capture_logs(processors=[merge_contextvars]) as logs:
        yield events, lines, logs


async def process(bench: Bench, events: EventLog, *dead: int) -> None:
    await bench.unregister(*dead)
    event = BrokerChange()
    events.started(event, 0.5)
    await bench.runner.run(event.name, dispatch.rounds_for(bench.context, event, HOST), events.event_id)
    events.finished(event, 0.25)


def kept(line: Mapping[str, Any], *names: str) -> tuple[object, ...]:
    return tuple(line[name] for name in names)


@pytest.mark.requirement("E1")
async def test_a_line_sums_up_what_an_event_changed(bench: Bench) -> None:
    await bench.start((1, 2), (2, 1), brokers=(1, 2))
    with watched(bench) as (events, _, logs):
        await process(bench, events, 1)
    [summary] = [line for line in logs if line["event"] == "changed"]
    assert kept(summary, "event_id", "during", "log_level") == ("0-1", "BrokerChange", "info")
    assert kept(summary, "seconds", "queued_seconds") == (0.25, 0.5)
    assert kept(summary, "brokers_gone", "leaders", "isrs", "partitions_offline") == ([1], 1, 2, 1)
    assert summary["partitions_online"] == 1
    assert summary["commits"] == 1


async def test_an_event_that_changed_nothing_is_not_told(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    with watched(bench) as (events, lines, logs):
        await process(bench, events)
    assert (logs, lines.text) == ([], [])


async def test_ids_grow_and_begin_anew_with_each_controllership(bench: Bench) -> None:
    events = EventLog()
    seen = []
    for _ in range(2):
        events.started(BrokerChange(), 0)
        seen.append(events.event_id)
        events.finished(BrokerChange(), 0)
    events.took_office(evolve(bench.context, epoch=7), None)  # type: ignore[arg-type]
    seen.append(events.event_id)
    events.finished(BrokerChange(), 0)
    events.started(BrokerChange(), 0)
    assert [*seen, events.event_id] == ["0-1", "0-2", "7-0", "7-1"]
    events.finished(BrokerChange(), 0)


async def test_an_event_that_another_one_calls_for_tells_which(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    with watched(bench) as (events, _, logs):
        events.started(TopicChange(), 0)
        events.calls_for(BrokerChange())
        events.finished(TopicChange(), 0)
        await process(bench, events, 1)
        await process(bench, events, 2)
    told = [line.get("caused_by") for line in logs if line["event"] == "changed"]
    assert told == ["0-1", None]


@pytest.mark.requirement("D3", "D11")
async def test_each_change_is_written_down_with_its_cause(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    with watched(bench) as (events, lines, _):
        await process(bench, events, 1)
    names = ("partition", "leader_before", "leader", "isr_before", "isr", "leader_epoch", "event_id", "during")
    [elected] = lines.of("leadership")
    assert kept(elected, *names) == ("orders-0", 1, 2, [1, 2], [2], 1, "0-1", "BrokerChange")
    assert (elected["round"], elected["zxid"]) == ("leave", bench.seen.commits[-1].zxid)
    moves = [kept(line, "before", "to") for line in lines.of("partition state")]
    assert moves == [("OnlinePartition", "OfflinePartition"), ("OfflinePartition", "OnlinePartition")]
    assert [kept(line, "broker", "to") for line in lines.of("replica state")] == [(1, "OfflineReplica")]
    assert [line["broker"] for line in lines.of("broker gone")] == [1]


async def test_a_load_is_written_down_as_a_way_through_the_states(bench: Bench) -> None:
    with watched(bench) as (_, lines, _):
        await bench.start((1, 2), brokers=(1, 2))
    moves = [kept(line, "before", "to") for line in lines.of("partition state")]
    assert moves == [("NonExistentPartition", "NewPartition"), ("NewPartition", "OnlinePartition")]
    [assigned] = lines.of("assignment")
    assert kept(assigned, "replicas_before", "replicas") == ([], [1, 2])
    [created] = lines.of("leadership")
    assert (created["leader_before"], created["leader"]) == (None, 1)


@pytest.mark.requirement("D3")
async def test_a_refused_transition_shows_both_states_and_the_id(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    moves = (PartitionsMoved([TP], PartitionPhase.NEW), PartitionsMoved([TP], PartitionPhase.OFFLINE))
    illegal = Step((TP,), facts=moves)
    with watched(bench) as (events, lines, logs):
        events.started(BrokerChange(), 0)
        await bench.run(apply("wrong", [illegal]))
        events.finished(BrokerChange(), 0)
    [refusal] = [line for line in logs if line["log_level"] == "error"]
    assert kept(refusal, "before", "to", "event_id") == ("OnlinePartition", "NewPartition", "0-1")
    [written] = lines.of("illegal partition transition refused")
    assert kept(written, "before", "to") == ("OnlinePartition", "NewPartition")
    [legal] = lines.of("partition state")
    assert kept(legal, "before", "to") == ("OnlinePartition", "OfflinePartition")
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE


async def test_nothing_is_formatted_while_no_file_is_named(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))

    class Unprintable(TopicPartition):
        def __str__(self) -> str:
            raise AssertionError("formatted")

    events = EventLog()
    bench.runner.instrument = events
    state = bench.context.leadership[TP]
    events.started(BrokerChange(), 0)
    await bench.run(apply("any", [Step(facts=(LeadershipsWritten([Unprintable(*TP)], [state]),))]))
    events.finished(BrokerChange(), 0)


# --- a running controller ---------------------------------------------------------------------------------------


async def set_up(store: MetadataStore, brokers: Sequence[int]) -> None:
    await ensure_paths(store, paths.PERSISTENT)
    for id_ in brokers:
        data = formats.encode_broker(BrokerRegistration(id_, "127.0.0.1", 1, -1), 0)
        await store.multi([Create(paths.broker(id_), data, ephemeral=True)])
    topic = formats.TopicZnode({0: ReplicaAssignment(tuple(brokers))}, "id")
    await store.multi([Create(paths.topic(TP.topic), formats.encode_topic(topic))])


@pytest.mark.requirement("D11", "E1")
async def test_one_id_leads_from_the_trace_over_the_state_changes_to_the_log(
    tmp_path: Path, memory: MemoryZooKeeper
) -> None:
    file = tmp_path / "state-change.log"

    async def last_commit(service: ControllerService) -> TracedCommit:
        return (await service.trace.read(0, 0)).commits[-1]

    with capture_logs(processors=[merge_contextvars]) as logs:
        async with memory.session() as store, trio.open_nursery() as nursery:
            await set_up(store, (1, 2))
            service = await Controllers(memory, nursery).start(state_change_log=str(file))
            await until(lambda: "in office" in {line["event"] for line in logs})
            await store.multi([Delete(paths.broker(1))])
            await until(lambda: "BrokerChange" in service.statistics())
            commit = await last_commit(service)
            nursery.cancel_scope.cancel()

    assert commit.partitions[0].leader == 2
    epoch, _, number = commit.event_id.partition("-")
    assert (epoch, int(number) > 0) == ("1", True)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    [change_] = [line for line in lines if line["change"] == "leadership" and line["event_id"] == commit.event_id]
    assert (change_["leader_before"], change_["leader"], change_["zxid"]) == (1, 2, commit.zxid)
    [cause] = [line for line in logs if line["event"] == "changed" and line["event_id"] == commit.event_id]
    assert kept(cause, "during", "brokers_gone", "leaders") == ("BrokerChange", [1], 1)
    [elected, *_] = [line for line in logs if line["event"] == "elected"]
    assert elected["event_id"] == "1-0"
    # What a channel does later is not the doing of the event that started it.
    assert all("event_id" not in line for line in logs if line["event"] == "trying again")
