"""The metrics page during a controllership."""

from __future__ import annotations

import pytest
import trio
from attrs import evolve

from actors import EventStatistics
from controller import events as events_module
from controller.channels.broker_channels import BrokerChannels
from controller.config import ControllerConfig
from controller.events import BrokerChange, ConfigChange, ControllerEvent, RequestEvent
from controller.monitoring.controller_states import STATE_OF, ControllerState
from controller.monitoring.measurements import Measurements, measured
from controller.monitoring.metrics import CONTROLLER, MAX_PARTITION_SERIES, STATS, ControllerMetrics
from controller.node import dispatch
from controller.progress.report import Totals
from tests.controller import deletions
from tests.controller.conftest import ENDPOINT, HOST, TP, Bench, bench, clock
from tests.kit.scrape import Samples, samples
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ChangeRolloutRequest,
    ChangeRolloutResponse,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    StartRolloutResponse,
    UploadRolloutRequest,
    UploadRolloutResponse,
)
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import SessionState

__all__ = ["bench", "clock"]  # fixtures

OFFLINE = f"{CONTROLLER}_offlinepartitionscount"
IMBALANCED = f"{CONTROLLER}_preferredreplicaimbalancecount"


def page_of(measurements: Measurements, moves: Totals | None = None) -> Samples:
    metrics = ControllerMetrics(
        measurements,
        queue_size=lambda: 3,
        events=lambda: {"BrokerChange": EventStatistics(2, 0.5, 0.5, 1.5, 1.0)},
        session_state=lambda: SessionState.CONNECTED,
        quarantined=lambda: 0,
    )
    metrics.moves = moves or Totals()
    return samples(metrics.text().decode())


async def take_office(bench: Bench, nursery: trio.Nursery) -> Measurements:
    seen = Measurements()
    channels = BrokerChannels(nursery, TcpNetwork(), HOST, ControllerConfig(1001), ENDPOINT, 1, lambda *_: None)
    bench.runner.instrument = seen
    seen.took_office(bench.context, channels)
    return seen


async def process(bench: Bench, seen: Measurements, event: ControllerEvent) -> None:
    seen.started(event, 0.002)
    await bench.handle(event)
    seen.finished(event, 0.02)


def test_all_is_zero_on_a_standby() -> None:
    page = page_of(Measurements())
    gauges = [name for name in page if name.startswith((CONTROLLER, "klamm_under", "klamm_partition"))]
    assert len(gauges) > 12
    assert {page[name] for name in gauges} == {0}


@pytest.mark.requirement("D11", "D4")
async def test_the_cluster_in_numbers(bench: Bench, nursery: trio.Nursery) -> None:
    seen = await take_office(bench, nursery)
    await bench.start((1, 2), (2, 1), (1,), brokers=(1, 2))
    seen.finished(BrokerChange(), 0)
    page = page_of(seen)
    assert (page[f"{CONTROLLER}_activecontrollercount"], page[f"{CONTROLLER}_activebrokercount"]) == (1, 2)
    assert (page[f"{CONTROLLER}_globaltopiccount"], page[f"{CONTROLLER}_globalpartitioncount"]) == (1, 3)
    assert (page[OFFLINE], page[IMBALANCED], page["klamm_under_replicated_partitions"]) == (0, 0, 0)

    await bench.unregister(1)
    await process(bench, seen, BrokerChange())
    page = page_of(seen)
    assert (page[OFFLINE], page[IMBALANCED], page["klamm_under_replicated_partitions"]) == (1, 2, 2)
    assert page['klamm_partition_available{partition="2",reason="offline",topic="orders"}'] == 0
    assert page[f"{STATS}_uncleanleaderelections_total"] == 0
    assert page[f"{CONTROLLER}_activebrokercount"] == 1

    seen.left_office()
    assert page_of(seen)[OFFLINE] == 0


async def test_deletions_in_numbers(bench: Bench, nursery: trio.Nursery) -> None:
    seen = await take_office(bench, nursery)
    await bench.start((1, 2, 3), (1, 3))
    await bench.kill(2)
    await deletions.mark(bench, "orders")
    names = [f"{CONTROLLER}_{what}deletecount" for what in ("topicsto", "replicasto")]
    waiting = [f"{CONTROLLER}_{what}ineligibletodeletecount" for what in ("topics", "replicas")]
    assert [page_of(seen)[name] for name in [*names, *waiting]] == [1, 5, 1, 1]
    await deletions.deleted(bench, deletions.replica(1), deletions.replica(3))
    assert [page_of(seen)[name] for name in [*names, *waiting]] == [1, 3, 1, 1]


@pytest.mark.requirement("B5")
def test_moves_in_numbers() -> None:
    names = ["klamm_stalled_reassignments", "klamm_reassignment_bytes_left", "klamm_reassignment_bytes_per_second"]
    page = page_of(Measurements(), Totals(moves=7, stalled=2, bytes_left=5000, rate=100, eta_ms=50_000))
    assert [page[name] for name in names] == [2, 5000, 100]
    page = page_of(Measurements())
    assert [page[name] for name in names] == [0, 0, 0]


async def test_rollouts_in_numbers(bench: Bench, nursery: trio.Nursery) -> None:
    names = ["klamm_rollouts", "klamm_held_rollouts", "klamm_rollout_moves_left"]
    seen = await take_office(bench, nursery)
    await bench.start(*[(1, 2)] * 6, brokers=(1, 2, 3))
    assert [page_of(seen)[name] for name in names] == [0, 0, 0]
    for name, first in (("monday", 0), ("tuesday", 3)):
        moves = tuple(RolloutMove("orders", number, (3, 2), size=1) for number in range(first, first + 3))
        await bench.ask(UploadRolloutRequest(name, "digest", 0, moves), UploadRolloutResponse)
        await bench.ask(StartRolloutRequest(name, "digest", 3, RolloutSettings(in_all=1)), StartRolloutResponse)
    assert [page_of(seen)[name] for name in names] == [2, 0, 6]
    await bench.ask(ChangeRolloutRequest("monday", RolloutOrder.PAUSE), ChangeRolloutResponse)
    assert [page_of(seen)[name] for name in names] == [2, 1, 6]
    await bench.ask(ChangeRolloutRequest("monday", RolloutOrder.ABORT), ChangeRolloutResponse)
    assert page_of(seen)["klamm_held_rollouts"] == 0


@pytest.mark.requirement("D4", "C4")
async def test_an_unclean_election_is_counted(bench: Bench, nursery: trio.Nursery) -> None:
    seen = await take_office(bench, nursery)
    await bench.start((1, 2), brokers=(1, 2))
    await bench.alter_isr(TP, 1)
    await bench.kill(1)
    assert page_of(seen)[f"{STATS}_uncleanleaderelections_total"] == 0
    await bench.ask(ElectLeadersRequest(ElectionType.UNCLEAN, (TP,)), ElectLeadersResponse)
    assert bench.context.leadership[TP].leader == 2
    assert page_of(seen)[f"{STATS}_uncleanleaderelections_total"] == 1


@pytest.mark.requirement("E1")
async def test_events_are_timed_by_state(bench: Bench, nursery: trio.Nursery) -> None:
    seen = await take_office(bench, nursery)
    await bench.start((1, 2), brokers=(1, 2))
    seen.started(BrokerChange(), 0.002)
    assert page_of(seen)[f"{CONTROLLER}_controllerstate"] == ControllerState.BROKER_CHANGE.number
    seen.finished(BrokerChange(), 0.02)
    page = page_of(seen)
    assert page[f"{CONTROLLER}_controllerstate"] == 0
    timer = f"{STATS}_leaderelectionrateandtimems"
    assert (page[f"{timer}_count"], page[f"{timer}_sum"]) == (1, 20)
    assert (page[f'{timer}_bucket{{le="10.0"}}'], page[f'{timer}_bucket{{le="50.0"}}']) == (0, 1)
    waited = "kafka_controller_controllereventmanager_eventqueuetimems"
    assert (page[f"{waited}_count"], page[f"{waited}_sum"]) == (1, 2)
    assert page["kafka_controller_controllereventmanager_eventqueuesize"] == 3
    assert page['klamm_events_total{event="BrokerChange"}'] == 2
    assert page['klamm_event_seconds_total{event="BrokerChange"}'] == 1.5


@pytest.mark.requirement("D11")
async def test_many_unavailable_partitions_get_a_bounded_number_of_series(bench: Bench, nursery: trio.Nursery) -> None:
    seen = await take_office(bench, nursery)
    count = MAX_PARTITION_SERIES + 5
    await bench.start(*[(1,)] * count, brokers=(1, 2))
    await bench.unregister(1)
    await process(bench, seen, BrokerChange())
    page = page_of(seen)
    assert page[OFFLINE] == count
    assert sum(name.startswith("klamm_partition_available{") for name in page) == MAX_PARTITION_SERIES
    assert page["klamm_partition_available_omitted"] == 5


async def test_a_leader_with_too_small_an_isr_is_unavailable(bench: Bench, nursery: trio.Nursery) -> None:
    seen = await take_office(bench, nursery)
    bench.context.config = evolve(bench.context.config, min_insync_replicas=2)
    await bench.start((1, 2), brokers=(1, 2))
    await bench.alter_isr(TP, 1)
    seen.finished(BrokerChange(), 0)
    page = page_of(seen)
    assert page["klamm_under_min_isr_partitions"] == 1
    assert page['klamm_partition_available{partition="0",reason="under_min_isr",topic="orders"}'] == 0


async def test_what_a_topic_demands_of_its_isr_counts_and_follows_its_settings(
    bench: Bench, nursery: trio.Nursery
) -> None:
    seen = await take_office(bench, nursery)

    async def unavailable() -> float:
        seen.finished(BrokerChange(), 0)
        return page_of(seen)["klamm_under_min_isr_partitions"]

    async def demand(value: int) -> None:
        change = AlterableConfig("min.insync.replicas", ConfigOperation.SET, str(value))
        resource = ConfigResource(ConfigResourceType.TOPIC, TP.topic)
        request = IncrementalAlterConfigsRequest((AlterConfigsResource(resource, (change,)),))
        await bench.ask(request, IncrementalAlterConfigsResponse)
        await bench.handle(ConfigChange())

    await bench.start((1, 2), (2, 1), brokers=(1, 2))
    await bench.alter_isr(TP, 1)
    assert await unavailable() == 0
    await demand(2)
    assert await unavailable() == 1
    await demand(3)
    assert await unavailable() == 2
    await bench.fail_over()
    seen.took_office(bench.context, None)  # type: ignore[arg-type]
    assert bench.context.min_isr(TP.topic) == 3
    await demand(1)
    assert await unavailable() == 0


async def test_requests_to_the_store_and_what_becomes_of_the_session_are_counted() -> None:
    zookeeper, seen = MemoryZooKeeper(lambda: 0), Measurements()
    async with zookeeper.session() as session:
        store = measured(session, seen)
        await store.read(["/"])
        await store.children(["/"])
        zookeeper.disconnect(store.session_id)
        zookeeper.reconnect(store.session_id)
        await trio.testing.wait_all_tasks_blocked()
        page = page_of(seen)
        assert (store.session_id, store.state) == (session.session_id, session.state)
    assert page["kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_count"] == 2
    assert page["kafka_server_sessionexpirelistener_zookeeperdisconnects_total"] == 1
    assert page["kafka_server_sessionexpirelistener_zookeepersyncconnects_total"] == 2
    assert page['klamm_zookeeper_session_state{state="connected"}'] == 1


def test_every_event_has_a_state() -> None:
    types = [t for t in vars(events_module).values() if isinstance(t, type) and issubclass(t, ControllerEvent)]
    # Those of requests have the names of their apis.
    names = {t.__name__ for t in types if not issubclass(t, RequestEvent)} - {ControllerEvent.__name__}
    requests = {request.__name__.removesuffix("Request") for request in dispatch.REQUESTS}
    assert names | requests <= set(STATE_OF)
    assert len({state.number for state in ControllerState}) == len(ControllerState)
