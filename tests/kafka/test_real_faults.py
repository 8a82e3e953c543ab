"""Faults of real brokers under our controller, while two clients write; each tells how long a record waited."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.kafka.expectations import require_all_read, require_standbys
from tests.kafka.real_brokers import RealBroker
from tests.kafka.real_cluster import FIRST, RealCluster, Starting, real_cluster, until
from tests.kafka.traffic import Written, read, until_more, write, writing
from transport.messages import PartitionState
from transport.store import paths
from transport.store.protocol import Delete
from transport.store.zookeeper import open_zookeeper

TOPICS = ("orders", "payments")
MORE = 100
STOPPED_BY_SIGTERM = 143
LONG_SESSIONS = Starting(session_ms=30_000)
SETTINGS = {"strict": {}, "risky": {"unclean.leader.election.enable": "true"}}
NOBODY = -1


@pytest.fixture
async def cluster(zookeeper: str, tmp_path: Path, release: str) -> AsyncIterator[RealCluster]:
    """Give the test brokers and a controller whose sessions last until a killed broker is back."""
    running = real_cluster(f"{zookeeper}/faults-{tmp_path.name}", tmp_path, release=release, starting=LONG_SESSIONS)
    async with running as cluster:
        yield cluster


@asynccontextmanager
async def two_writing(cluster: RealCluster) -> AsyncIterator[tuple[Written, Written]]:
    """Write to two topics until the end of the block; then all that was acknowledged is read, once."""
    for topic in TOPICS:
        await cluster.create(topic, partitions=3)
    one, other = (writing(cluster.bootstrap, topic) for topic in TOPICS)
    async with one as orders, other as payments:
        yield orders, payments
        await until_more(orders, MORE)
        await until_more(payments, MORE)
    for topic, written in zip(TOPICS, (orders, payments), strict=True):
        await require_all_read(cluster, topic, written)
    require_standbys(cluster)


@pytest.mark.soak
async def test_brokers_return_within_their_session_and_without_a_log_directory(cluster: RealCluster) -> None:
    await return_after_faults(cluster)


async def return_after_faults(cluster: RealCluster) -> None:
    """Bounce a broker, and let a log directory of one fail, while two clients write."""
    async with two_writing(cluster) as both:
        for fault in (return_within_the_session, return_without_a_log_dir):
            since = trio.current_time()
            await fault(cluster)
            waits = ", ".join(f"{written.longest_wait(since):.1f} s" for written in both)
            sys.stdout.write(f"{fault.__name__}: records of each topic waited at most for {waits}\n")


async def return_within_the_session(cluster: RealCluster) -> None:
    """Bounce a broker that leads: it returns into every ISR, and our controller stays in office."""
    epoch, before = await controller_epoch(cluster), await cluster.state("orders")
    await bounce(cluster, cluster.brokers[before.leader])
    for topic in TOPICS:
        await cluster.until_in_sync(topic, count=3)
    assert (await cluster.state("orders")).leader_epoch > before.leader_epoch
    assert await controller_epoch(cluster) == epoch


async def controller_epoch(cluster: RealCluster) -> bytes:
    async with open_zookeeper(cluster.zookeeper) as store:
        [znode] = await store.read([paths.CONTROLLER_EPOCH])
    assert znode is not None
    return znode.data


async def bounce(cluster: RealCluster, broker: RealBroker) -> None:
    """Kill a broker and start it at once: its id stays registered for the controller, and gets a new epoch."""
    znode = paths.broker(broker.id)
    async with open_zookeeper(cluster.zookeeper) as store, trio.open_nursery() as nursery:
        [before] = await store.read([znode])
        assert before is not None
        starts = broker.starts()
        broker.kill()
        nursery.start_soon(broker.start)

        async def is_about_to_register() -> bool:
            return broker.starts() > starts

        async def is_registered() -> bool:
            [now] = await store.read([znode])
            return now is not None and now.stat.czxid > before.stat.czxid

        await until(is_about_to_register)
        # A broker that finds its own id taken gives up, and the controller must not see that it is free.
        with cluster.controllers.paused(FIRST):
            await store.multi([Delete(znode, before.stat.version)])
            await until(is_registered)


async def return_without_a_log_dir(cluster: RealCluster) -> None:
    """Let a log directory of a leader fail: others lead, and the broker gets its replicas anew in an empty one."""
    before = await cluster.state("orders")
    broker = cluster.brokers[before.leader]
    lost = lose_log_dir(broker, "orders-0")
    await until_offline(cluster, broker.id, lost)
    assert (await cluster.state("orders")).leader != broker.id
    assert await broker.terminate() == STOPPED_BY_SIGTERM
    for directory in filter(Path.is_file, broker.log_dirs):
        directory.unlink()
    await broker.start()
    for topic in TOPICS:
        await cluster.until_in_sync(topic, count=3)


def lose_log_dir(broker: RealBroker, log: str) -> set[str]:
    """Put a file in place of the log directory that has a log, and return all logs that were there."""
    [directory] = [path for path in broker.log_dirs if (path / log).is_dir()]
    logs = {path.name for path in directory.iterdir() if path.is_dir()}
    directory.rename(directory.with_suffix(".lost"))
    directory.touch()
    return logs


async def until_offline(cluster: RealCluster, broker_id: int, lost: set[str]) -> None:
    """Wait until a broker's lost replicas are offline, led by others, and its other replicas are in sync."""

    async def are_offline() -> bool:
        states = [state for topic in TOPICS for state in await cluster.states(topic)]
        without = {name(state) for state in states if broker_id not in state.isr}
        offline = {name(state) for state in states if broker_id in state.offline_replicas}
        here = {name(state) for state in states} & lost
        return without == offline == here and all(state.leader >= 0 for state in states)

    await until(are_offline)
    assert {name(state) for state in await cluster.states("orders")} - lost


def name(state: PartitionState) -> str:
    return f"{state.topic}-{state.partition}"


@pytest.mark.soak
async def test_an_unclean_election_is_allowed_or_not(cluster: RealCluster) -> None:
    await elect_uncleanly(cluster)


async def elect_uncleanly(cluster: RealCluster) -> None:
    """Leave each topic with a broker outside its ISR alone: that one leads where it may."""
    for topic, configs in SETTINGS.items():
        await cluster.create(topic, (1, 2, 3), configs=configs)
    first = await write_each(cluster, 0)
    # The last of the brokers to be stopped is the whole ISR, and the first has missed what was written meanwhile.
    await cluster.brokers[3].terminate()
    await until_led(cluster, {topic: (1, {1, 2}) for topic in SETTINGS})
    second = await write_each(cluster, MORE)
    for broker_id in (2, 1):
        await cluster.brokers[broker_id].terminate()
    await until_led(cluster, {topic: (NOBODY, {1}) for topic in SETTINGS})
    for broker_id in (3, 2):
        await cluster.brokers[broker_id].start()
    await until_led(cluster, {"strict": (NOBODY, {1}), "risky": (3, {2, 3})})
    await cluster.brokers[1].start()
    await until_led(cluster, {"strict": (1, {1, 2, 3}), "risky": (3, {1, 2, 3})})
    third = await write_each(cluster, 2 * MORE)
    await require_all_read(cluster, "strict", *(written["strict"] for written in (first, second, third)))
    found = await read(cluster.bootstrap, "risky", "readers-of-risky")
    assert found == [*first["risky"].values, *third["risky"].values]
    sys.stdout.write(f"risky: {len(second['risky'].values)} acknowledged records lost by the unclean election\n")
    require_standbys(cluster)


async def write_each(cluster: RealCluster, first: int) -> dict[str, Written]:
    """Write further records to each topic, and require that all are acknowledged."""
    written = {topic: await write(cluster.bootstrap, topic, MORE, first) for topic in SETTINGS}
    assert [len(each.values) for each in written.values()] == [MORE] * 2
    return written


async def until_led(cluster: RealCluster, wanted: dict[str, tuple[int, set[int]]]) -> None:
    """Wait until topics have these leaders and ISRs."""

    async def are_led() -> bool:
        states = {topic: await cluster.state(topic) for topic in wanted}
        return {topic: (state.leader, set(state.isr)) for topic, state in states.items()} == wanted

    await until(are_led)
