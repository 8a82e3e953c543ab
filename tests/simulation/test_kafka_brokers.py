"""Simulated brokers of Apache Kafka's, of several releases, under our controllers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import trio

from controller.handlers import alter_partition, leader_epochs
from klamm.testing import open_cluster
from klamm.testing.actions import AnswerRequests, CannotBeDone, CreateTopic, KeepOutOfIsr, PlaceTopic, RefuseRequests
from simulator.cluster import SimulatedCluster
from simulator.frames import control_request, describe_frame
from simulator.trace import Trace
from transport.errors import ErrorCode
from transport.messages import LeaderAndIsrRequest, UpdateMetadataRequest
from transport.store import paths

pytestmark = pytest.mark.usefixtures("autojump_clock")

RELEASES = ("3.9", "2.8", "3.3")
"""Of the brokers 3, 1 and 2, and so on."""


def frames(trace: Trace, where: str) -> list[bytes]:
    return [entry.what for entry in trace.entries if entry.where == where and isinstance(entry.what, bytes)]


def versions(trace: Trace, broker_id: int) -> set[tuple[str, int]]:
    """Return the apis and versions of a broker's requests and of those that it was sent."""
    both = frames(trace, f"controller-101>broker-{broker_id}") + frames(trace, f"broker-{broker_id}>controller-101")
    found = [re.match(r"#\d+ (\w+) v(\d+) ", describe_frame(frame)) for frame in both]
    return {(match[1], int(match[2])) for match in found if match is not None}


def incarnation(cluster: SimulatedCluster, broker_id: int) -> int:
    znode = cluster.durable.tree.read(paths.broker(broker_id))
    assert znode is not None
    return znode.stat.czxid


async def test_a_broker_is_spoken_to_as_its_release_can() -> None:
    async with open_cluster(brokers=4, controllers=1, replica_lag_time=1.0, releases=RELEASES) as cluster:
        await cluster.create_topic("orders", [(n, n % 4 + 1) for n in range(1, 5)])
        for number in range(4):
            await cluster.produce(f"orders-{number}", [b"paid"])
        for broker_id in (2, 3, 4):
            await cluster.stop(broker_id)
            cluster.restart(broker_id)
            await cluster.settle()
        await cluster.delete_topic("orders")
        await cluster.settle()
        told = {broker_id: versions(cluster.trace, broker_id) for broker_id in (2, 3, 4)}
    orders_of_28 = {("ApiVersions", 3), ("LeaderAndIsr", 5), ("UpdateMetadata", 7), ("StopReplica", 3)}
    assert told[4] >= orders_of_28 | {("AlterPartition", 0), ("ControlledShutdown", 3)}
    orders_of_33 = {("ApiVersions", 3), ("LeaderAndIsr", 6), ("UpdateMetadata", 7), ("StopReplica", 3)}
    assert told[2] >= orders_of_33 | {("AlterPartition", 2), ("ControlledShutdown", 3)}
    orders_of_39 = {("ApiVersions", 3), ("LeaderAndIsr", 7), ("UpdateMetadata", 8), ("StopReplica", 4)}
    assert told[3] >= orders_of_39 | {("ApiVersions", 4), ("AlterPartition", 3), ("ControlledShutdown", 3)}


async def test_a_move_and_a_deletion_leave_nothing_behind() -> None:
    async with open_cluster(brokers=5, releases=RELEASES) as cluster:
        await cluster.create_topic("orders", [(1, 2, 3)])
        await cluster.produce("orders-0", [b"paid", b"sent"])
        await cluster.reassign({"orders-0": (3, 4, 5)})
        cluster.crash(1)
        await cluster.until_moved("orders-0")
        assert await cluster.produce("orders-0", [b"arrived"]) == 2
        await cluster.settle()
        disks = {id_: broker.disk for id_, broker in cluster.brokers.items()}
        logs = {id_: [len(log.records) for log in disk.logs.values()] for id_, disk in disks.items()}
        assert logs == {1: [], 2: [], 3: [3], 4: [3], 5: [3]}
        await cluster.delete_topic("orders")
        await cluster.settle()
        assert not any(broker.disk.logs for broker in cluster.brokers.values())


async def test_the_controller_is_among_the_live_brokers() -> None:
    async with open_cluster(brokers=2, controllers=1, releases=("3.9",)) as cluster:
        registered = [cluster.durable.tree.read(paths.broker(id_)) for id_ in (1, 2)]
        assert all(znode is not None and b"PLAINTEXT://" in znode.data for znode in registered)
        controllers = [order.controller for order in _orders(cluster, 1) if isinstance(order, UpdateMetadataRequest)]
        assert {(node.id, node.host, node.port) for node in controllers} == {(101, "controller-101", 9093)}


async def test_an_order_that_is_refused_as_a_whole_is_not_carried_out() -> None:
    async with open_cluster(brokers=2, controllers=1, releases=("3.9",)) as cluster:
        RefuseRequests(2, "LeaderAndIsr", ErrorCode.STALE_CONTROLLER_EPOCH).on(cluster)
        await cluster.create_topic("orders", [(1, 2)])
        await cluster.until(lambda: any(isinstance(order, LeaderAndIsrRequest) for order in _orders(cluster, 2)))
        assert not cluster.brokers[2].disk.logs
        await cluster.settle()
        assert cluster.brokers[2].disk.logs


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST])
@pytest.mark.parametrize("api", ["LeaderAndIsr", "UpdateMetadata"])
async def test_an_order_that_a_broker_fails_at_is_repeated(api: str, error: ErrorCode) -> None:
    async with open_cluster(brokers=2, controllers=1, replica_lag_time=1.0, releases=("3.9",)) as cluster:
        await cluster.create_topic("orders", [(2, 1)])
        before = incarnation(cluster, 1)
        RefuseRequests(1, api, error).on(cluster)
        await cluster.create_topic("leads", [(1, 2)])
        await cluster.create_topic("follows", [(2, 1)])
        await trio.sleep(1)
        AnswerRequests(1).on(cluster)
        with trio.fail_after(30):
            for topic in ("orders", "leads", "follows"):
                assert await cluster.produce(f"{topic}-0", [b"paid"]) == 0
        await cluster.settle()
        followed = {tp.topic: len(log.records) for tp, log in cluster.brokers[1].disk.logs.items()}
        assert followed == {"orders": 1, "leads": 1, "follows": 1}
        assert incarnation(cluster, 1) == before


async def test_a_topic_that_a_broker_places_on_the_controller_gets_a_broker_in_its_place() -> None:
    async with open_cluster(brokers=3, controllers=2, releases=RELEASES) as cluster:
        first = cluster.active_controller
        assert first is not None
        PlaceTopic((CreateTopic("offsets", ((1, first), (first, 3, 2))),)).on(cluster)
        await cluster.until(lambda: cluster.partition("offsets-1") is not None)
        placed = [cluster.partition(f"offsets-{number}") for number in range(2)]
        assert [len(state.replicas) for state in placed if state is not None] == [2, 3]
        assert {r for state in placed if state is not None for r in state.replicas} == {1, 2, 3}
        await cluster.settle()


async def test_no_broker_knows_a_controller_that_has_never_been_in_office() -> None:
    async with open_cluster(brokers=2, controllers=2, releases=RELEASES) as cluster:
        [standby] = {101, 102} - {cluster.active_controller}
        with pytest.raises(CannotBeDone):
            PlaceTopic((CreateTopic("offsets", ((1, standby),)),)).on(cluster)


@pytest.mark.parametrize(("release", "is_repeated"), [("2.8", True), ("3.9", False)])
async def test_a_refused_isr_is_pending_until_the_next_epoch_up_to_28(
    release: str, is_repeated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> ErrorCode:
        return ErrorCode.INELIGIBLE_REPLICA

    async with open_cluster(brokers=2, controllers=1, replica_lag_time=1.0, releases=(release,)) as cluster:
        await cluster.create_topic("orders", [(1, 2)])
        await cluster.produce("orders-0", [b"paid"])
        monkeypatch.setattr(alter_partition, "_isr_error", refuse)
        monkeypatch.setattr(leader_epochs, "_frozen", lambda *_: ())
        KeepOutOfIsr({"orders-0": (2,)}).on(cluster)
        began = trio.current_time()
        await trio.sleep(5)
        assert _has_proposed(cluster, began)
        KeepOutOfIsr({"orders-0": ()}).on(cluster)
        await trio.sleep(1)
        since = trio.current_time()
        await trio.sleep(20)
        assert _has_proposed(cluster, since) == is_repeated


def _has_proposed(cluster: SimulatedCluster, since: float) -> bool:
    """Return whether broker 1 has proposed an ISR since a time."""
    entries = [entry for entry in cluster.trace.entries if entry.where == "broker-1>controller-101"]
    return any(entry.time >= since and " AlterPartition " in entry.text() for entry in entries)


def _orders(cluster: SimulatedCluster, broker_id: int) -> Iterator[object]:
    for frame in frames(cluster.trace, f"controller-101>broker-{broker_id}"):
        order = control_request(frame)
        if order is not None:
            yield order
