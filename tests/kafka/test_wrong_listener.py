"""Real brokers, and controllers with a wrong, a forgotten, a partly missing listener, and with that of the clients."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.cli.shell import run_klamm
from tests.kafka import jars
from tests.kafka.expectations import require_all_read
from tests.kafka.real_cluster import FIRST, OPEN, RealCluster, real_cluster, until
from tests.kafka.releases import require_jars
from tests.kafka.states import states_of, until_in_sync
from tests.kafka.traffic import Written, until_more, writing
from tests.kit.ports import free_ports
from transport.child_process import spawn
from transport.store.kafka_office import Writer, read_office
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import HOST

pytestmark = pytest.mark.soak

OTHER: Final = 1002
RECORDS: Final = 100
"""The records that are written after each attempt."""

PARTLY: Final = "PARTLY"
"""A listener that two of the three brokers have."""

WRONG: Final[dict[str, tuple[Sequence[str], str]]] = {
    "wrong": (("--inter-broker-listener-name", "WRONG"), "no live broker has a listener named WRONG"),
    "forgotten": ((), "no live broker has a listener named PLAINTEXT"),
    "partly missing": (
        ("--inter-broker-listener-name", PARTLY),
        f"broker 3 would get no orders: no listener named {PARTLY}, which others have",
    ),
    "the clients'": (
        ("--inter-broker-listener-name", "EXTERNAL"),
        "the brokers use listener INTERNAL among themselves, and this controller is set to EXTERNAL",
    ),
}


@pytest.mark.real_kafka
async def test_a_wrong_listener_changes_no_partition_and_stops_no_producer(zookeeper: str, tmp_path: Path) -> None:
    require_jars(jars.RELEASE)
    address = f"{zookeeper}/listeners-{tmp_path.name}"
    running = real_cluster(address, tmp_path, release=jars.RELEASE)
    async with running as cluster, open_zookeeper(address) as store:
        await cluster.create("orders", partitions=3)
        await add_partly(cluster, store)
        await cluster.hand_over("release")
        cluster.controllers.kill(FIRST)
        async with writing(cluster.bootstrap, "orders") as orders:
            for name, (options, reason) in WRONG.items():
                before = await states_of(store, "orders")
                checked = await run_klamm("controller", "check", "--kafka", "--id", "1002", *options, *at(cluster))
                assert (checked.returncode, reason in checked.stdout.decode()) == (4, True), checked.stdout.decode()
                await run_other(cluster, options)
                line = await refused(cluster)
                assert reason in line, line
                assert "--inter-broker-listener-name INTERNAL" in line
                assert await states_of(store, "orders") == before
                assert await is_in_office(store, Writer.KAFKA)
                await until_more(orders, RECORDS)
                # Even in office, such a controller changes nothing of what brokers lead and follow.
                await force(cluster, store, orders)
                assert await states_of(store, "orders") == before
                cluster.controllers.kill(OTHER)
                await cluster.hand_over("release")
                sys.stdout.write(f"{name}: {line}\n")
            cluster.controllers.start(FIRST)
            await until_said(cluster, FIRST, "the office was released", times=2)
            await cluster.hand_over("take-over")
            await until_more(orders, RECORDS)
        await until_in_sync(store, "orders")
        await require_all_read(cluster, "orders", orders)
        sys.stdout.write(f"one record waited for {orders.longest_wait():.1f} s\n")


def at(cluster: RealCluster) -> Sequence[str]:
    return "--zookeeper", cluster.zookeeper


async def add_partly(cluster: RealCluster, store: MetadataStore) -> None:
    """Restart two brokers with one listener more."""
    ports = iter(free_ports(2))
    for broker in (cluster.brokers[1], cluster.brokers[2]):
        listeners = f"{broker.settings['listeners']},{PARTLY}://{HOST}:{next(ports)}"
        protocols = {name: f"{value},{PARTLY}:PLAINTEXT" for name, value in OPEN.items()}
        await broker.terminate()
        broker.settings = {**broker.settings, **protocols, "listeners": listeners}
        await broker.start()
        await until_in_sync(store, "orders")
    # Or else a controller of either kind soon hands leadership back, as it does every few minutes.
    elect = ("leader", "elect", "--election-type", "preferred", "--all-topic-partitions")
    assert (await run_klamm(*elect, *at(cluster))).returncode == 0


async def run_other(cluster: RealCluster, options: Sequence[str]) -> None:
    """Run a controller with these options, and wait until it stands by."""
    log = cluster.controllers.log(OTHER)
    log.unlink(missing_ok=True)
    run = [sys.executable, "-m", "klamm", "controller", "run", "--kafka", "--id", str(OTHER), *options, *at(cluster)]
    cluster.controllers.processes[OTHER] = spawn([*run, "--session-timeout", "4000"], log)
    await until_said(cluster, OTHER, "not standing for election")


async def until_said(cluster: RealCluster, controller_id: int, text: str, *, times: int = 1) -> None:
    async def is_said() -> bool:
        await trio.lowlevel.checkpoint()
        return cluster.controllers.log(controller_id).read_text().count(text) >= times

    await until(is_said)


async def refused(cluster: RealCluster) -> str:
    """Return the one line with which `take-over` ends."""
    done = await run_klamm("controller", "take-over", *at(cluster))
    assert done.returncode == 1, done.stdout.decode()
    [named, line] = done.stderr.decode().strip().splitlines()
    assert named.startswith("cluster ")
    return line


async def force(cluster: RealCluster, store: MetadataStore, orders: Written) -> None:
    """Take over in spite of the reasons, which are named, and see that producers go on."""
    done = await run_klamm("controller", "take-over", "--force", *at(cluster))
    assert done.returncode == 0, done.stderr.decode()
    assert "ignored: danger: " in done.stderr.decode()
    assert await is_in_office(store, Writer.KLAMM)
    await until_said(cluster, OTHER, "in office")
    await until_more(orders, RECORDS)


async def is_in_office(store: MetadataStore, writer: Writer) -> bool:
    holder = (await read_office(store)).holder
    return holder is not None and holder.writer is writer
