"""The course of the demo, from the first topic to the comparison of the logs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import click
import trio
from attrs import frozen

from broker.reference.log_dir import records_on_disk
from controller.admin.active_controller import OutcomeUnknown
from controller.admin.client import AdminClient
from controller.admin.move_rows import Stage, stage_of
from klamm.cli.demo.clusters import BROKERS, CONTROLLERS, DemoCluster, log_dir
from klamm.cli.demo.load import DemoLoad, record
from klamm.cli.demo.trace_follower import TraceFollower
from klamm.cli.demo.trace_rows import TraceRow, rows
from klamm.cli.reassignment.watching import wait_for
from transport.errors import ErrorCode
from transport.messages import BrokerEndpoint, NewTopic, ReassignablePartition, TracedCommit
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import MetadataStore

ORIGIN, TARGET = (1, 2, 3), (4, 5, 6)
ORDERS: Final = TopicPartition("orders", 0)
INVOICES: Final = "invoices"
RECORDS_BEFORE: Final = 6000
BATCH: Final = 10
BETWEEN_ROWS: Final = 50
"""Records that must be acknowledged between two rows that wait for data."""

START_SECONDS: Final = 60


@frozen
class DemoOutcome:
    """The results of the demo."""

    rows: list[TraceRow]
    acknowledged: int
    read_back: int
    lost: int
    repeated: int
    gaps: list[str]
    """Gaps in the table: stages lost with a controller that died, and waits that were too short."""

    faults: list[str]
    """Faults in the store, the trace or the logs."""


class DemoFailed(Exception):
    """The demo failed; the message gives the reason."""


@frozen
class DemoScene:
    """Everything that runs during the demo."""

    cluster: DemoCluster
    admin: AdminClient
    load: DemoLoad
    trace: TraceFollower
    controllers: dict[int, BrokerEndpoint]


async def set_up(cluster: DemoCluster, nursery: trio.Nursery) -> DemoScene:
    """Wait until the cluster runs, create the topics and begin to follow the traces."""
    with trio.move_on_after(START_SECONDS) as waiting:
        controllers = await _endpoints(cluster.store)
        bootstrap = [(c.host, c.port) for c in controllers.values()]
        admin = AdminClient(TcpNetwork(), bootstrap, cluster.store, START_SECONDS)
        while len((await admin.read_metadata()).brokers) < len(BROKERS):
            await trio.sleep(0.1)
    if waiting.cancelled_caught:
        raise DemoFailed(f"the cluster did not start within {START_SECONDS} s: its logs are in {cluster.data_dir}")
    brokers = (await admin.read_metadata()).brokers
    load = DemoLoad(TcpNetwork(), [(b.host, b.port) for b in brokers], ORDERS.topic)
    trace = TraceFollower(admin, lambda: load.acknowledged)
    for controller in controllers.values():
        nursery.start_soon(trace.follow, controller)
    invoices = NewTopic(INVOICES, 3, 2, ((1, 2), (2, 3), (3, 1)))
    created = await admin.create_topics([NewTopic(ORDERS.topic, 1, 3, (ORIGIN,)), invoices])
    for topic in created.topics:
        if topic.error is not ErrorCode.NONE:
            raise DemoFailed(f"{topic.name}: {topic.message}")
    return DemoScene(cluster, admin, load, trace, controllers)


async def _endpoints(store: MetadataStore) -> dict[int, BrokerEndpoint]:
    """Wait until every controller has announced its endpoint."""
    while True:
        found = await store.read([paths.controller_endpoint(id_) for id_ in CONTROLLERS])
        endpoints = [
            formats.decode_controller_endpoint(id_, znode.data)
            for id_, znode in zip(CONTROLLERS, found, strict=True)
            if znode is not None
        ]
        if len(endpoints) == len(CONTROLLERS):
            return {endpoint.id: endpoint for endpoint in endpoints}
        await trio.sleep(0.1)


async def move(scene: DemoScene, meanwhile: Callable[[DemoScene], Awaitable[None]] | None = None) -> None:
    """Move the partition while the producer writes, and run `meanwhile` at the same time."""
    await scene.load.fill(RECORDS_BEFORE, 100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.load.produce, BATCH)
        await scene.load.until(RECORDS_BEFORE + BETWEEN_ROWS)
        await reassign(scene.admin, {ORDERS: TARGET})
        if meanwhile is not None:
            nursery.start_soon(meanwhile, scene)
        await wait_for(scene.admin, {ORDERS: TARGET})
        await scene.load.until(scene.load.acknowledged + BETWEEN_ROWS)
        scene.load.stop()


async def reassign(admin: AdminClient, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    """Begin moves. Raises DemoFailed if one is refused."""
    wanted = [ReassignablePartition(tp.topic, tp.partition, target) for tp, target in targets.items()]
    try:
        answer = await admin.alter_partition_reassignments(wanted)
    except OutcomeUnknown:
        # The demo has no other administrator, and a repeated request for the same target changes nothing.
        answer = await admin.alter_partition_reassignments(wanted)
    for item in answer.partitions:
        if item.error is not ErrorCode.NONE:
            raise DemoFailed(f"{item.tp} cannot be moved: {item.message}")


async def kill_active_controller(scene: DemoScene) -> None:
    """Kill the active controller once the move has begun."""
    begun = await until_begun(scene)
    await scene.cluster.kill(begun.controller_id)
    click.echo(f"controller {begun.controller_id} was killed after U1")


async def until_begun(scene: DemoScene) -> TracedCommit:
    """Wait until the new replicas have been told to follow."""

    def is_brought_in(commit: TracedCommit) -> bool:
        return commit.round == "U1" and any(state.topic == ORDERS.topic for state in commit.partitions)

    return await scene.trace.wait_for(is_brought_in)


async def judge(scene: DemoScene) -> DemoOutcome:
    """Read everything back, stop the brokers, and compare logs, store and trace."""
    read_back = await scene.load.read_back()
    found = dict.fromkeys(read_back)
    lost = sum(record(number) not in found for number in range(scene.load.acknowledged))
    await _last_commits(scene)
    table = rows(scene.trace.seen, *ORDERS, frozenset(TARGET))
    faults = await _store_faults(scene, table)
    await _until_deleted(scene.cluster.store)
    await scene.cluster.stop_brokers()
    faults += _row_faults(table) + _log_faults(scene.cluster.data_dir, read_back)
    acknowledged = scene.load.acknowledged
    repeated = len(read_back) - len(found)
    return DemoOutcome(table, acknowledged, acknowledged - lost, lost, repeated, _gaps(table), faults)


async def _until_deleted(store: MetadataStore) -> None:
    """Wait until the brokers have deleted their removed replicas; any that remain show in the logs."""
    with trio.move_on_after(START_SECONDS):
        while any(await store.children([paths.STRAYS])):
            await trio.sleep(0.05)


async def _last_commits(scene: DemoScene) -> None:
    """Wait for the trace up to the end of the move: the subscription is a step behind the controller."""
    with trio.move_on_after(START_SECONDS):
        await scene.trace.wait_for(
            lambda commit: any(
                state.topic == ORDERS.topic and stage_of(state, frozenset(TARGET)) is Stage.DONE
                for state in commit.partitions
            )
        )


async def _store_faults(scene: DemoScene, table: Sequence[TraceRow]) -> list[str]:
    """Compare the last row with the znodes."""
    if not table:
        return ["the trace has no row"]
    topic, state = await scene.cluster.store.read([paths.topic(ORDERS.topic), paths.partition_state(ORDERS)])
    if topic is None or state is None:
        return ["the topic is not in the store"]
    assignment = formats.decode_topic(ORDERS.topic, topic.data).partitions[0]
    leadership = formats.decode_partition_state(ORDERS, state.data, state.stat.version)
    last = table[-1].state
    stored = (assignment.replicas, leadership.leader, leadership.isr, leadership.partition_epoch, topic.stat.version)
    shown = (last.replicas, last.leader, last.isr, last.partition_epoch, table[-1].topic_version)
    return [] if stored == shown else [f"the store has {stored}, the last row {shown}"]


def _row_faults(table: Sequence[TraceRow]) -> list[str]:
    faults = []
    stages, zxids = [row.stage for row in table], [row.zxid for row in table]
    if stages != [stage for stage in Stage if stage in stages]:
        faults.append(f"the stages are out of order: {[stage.value for stage in stages]}")
    if zxids != sorted(set(zxids)):
        faults.append(f"the zxids do not increase: {zxids}")
    return faults


def _gaps(table: Sequence[TraceRow]) -> list[str]:
    seen = {row.stage for row in table}
    waiting_for_data = {Stage.INITIAL, Stage.BRING_IN}
    missing = [f"no commit of stage {stage.value} was seen" for stage in Stage if stage not in seen]
    return missing + [
        f"fewer than {BETWEEN_ROWS} records were acknowledged before row {after.stage.value}"
        for before, after in pairwise(table)
        if before.stage in waiting_for_data and after.acknowledged - before.acknowledged < BETWEEN_ROWS
    ]


def _log_faults(data_dir: Path, read_back: Sequence[bytes]) -> list[str]:
    """Compare the logs on disk: equal on the target's brokers, gone from the others."""
    there = [id_ for id_ in BROKERS if (log_dir(data_dir, id_) / str(ORDERS)).exists()]
    faults = [f"broker {id_} still has a log" for id_ in there if id_ not in TARGET]
    faults += [f"broker {id_} has no log" for id_ in TARGET if id_ not in there]
    logs = {id_: records_on_disk(log_dir(data_dir, id_), ORDERS) for id_ in there if id_ in TARGET}
    for id_, log in logs.items():
        if [item.value for item in log] != list(read_back) or log != logs[TARGET[0]]:
            faults.append(f"the log on broker {id_} differs")
    return faults
