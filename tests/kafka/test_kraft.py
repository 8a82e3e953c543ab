"""A real migration to KRaft after a release: Kafka's controllers take over one after the other, and ours stay away."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import Final

import pytest

from tests.cli.shell import run_klamm
from tests.kafka import jars
from tests.kafka.expectations import require_all_read
from tests.kafka.real_brokers import RealBroker
from tests.kafka.real_cluster import FIRST, RealCluster, until
from tests.kafka.states import is_gone, stands_by, until_in_sync
from tests.kafka.traffic import until_more, writing
from tests.kit.ports import lasting_port
from transport.store import paths
from transport.store.kafka_office import Writer, read_office
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import HOST

KRAFT: Final = 3000
"""The id of the KRaft controller."""

TAKE_OVER: Final = ("take-over",)
RUN: Final = ("run", "--kafka", "--inter-broker-listener-name", "INTERNAL", "--id", "1003")
RECORDS_AFTER: Final = 100


def migration(port: int) -> dict[str, str]:
    """Return the settings that brokers and KRaft controllers get for the migration, as Kafka's guide has them."""
    return {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": f"{KRAFT}@{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.protocol.version": "3.9",
    }


async def kraft_controller(cluster: RealCluster, store: MetadataStore, port: int) -> RealBroker:
    """Return a KRaft controller, formatted for the cluster."""
    directory = cluster.directory / "kraft"
    data = directory / "metadata"
    data.mkdir(parents=True)
    [znode] = await store.read(["/cluster/id"])
    assert znode is not None
    properties = f"version=1\nnode.id={KRAFT}\ncluster.id={json.loads(znode.data)['id']}\n"
    (data / "meta.properties").write_text(properties)
    own = {"process.roles": "controller", "node.id": str(KRAFT), "log.dirs": str(data)}
    settings = migration(port) | own | {"listeners": f"CONTROLLER://{HOST}:{port}"}
    return RealBroker(KRAFT, jars.folder(jars.RELEASE), cluster.zookeeper, directory, settings, port)


async def refused(cluster: RealCluster, *words: str) -> str:
    """Return why a command of `klamm controller` ends in failure."""
    done = await run_klamm("controller", *words, "--zookeeper", cluster.zookeeper)
    assert done.returncode == 1, done.stdout.decode()
    return done.stderr.decode().strip()


@pytest.mark.soak
@pytest.mark.parametrize("release", [jars.RELEASE], indirect=True)
async def test_release_then_migrate(cluster: RealCluster) -> None:
    port = lasting_port()
    await cluster.create("orders", partitions=3)
    async with open_zookeeper(cluster.zookeeper) as store:
        kraft = await kraft_controller(cluster, store, port)
        try:
            async with writing(cluster.bootstrap, "orders") as orders:
                await cluster.hand_over("release")
                assert await writer_of(store) is Writer.KAFKA
                await kraft.start()
                await until(lambda: has_begun(store))
                begun = "/migration exists, so a migration to KRaft has begun: no controller of Klamm's takes office"
                remedy = "before the migration has been rolled back and that znode deleted"
                for command in (TAKE_OVER, RUN):
                    assert await refused(cluster, *command) == f"Error: {begun} {remedy}"
                await restart_brokers(cluster, store, migration(port))
                await until(lambda: is_krafts(store))
                await require_refused_under_kraft(cluster)
                assert await stands_by(cluster, FIRST, store, "the office was released")
                await until_more(orders, RECORDS_AFTER)
            sys.stdout.write(f"KRaft's controller {KRAFT} is in office\n")
            await require_all_read(cluster, "orders", orders)
        finally:
            await kraft.terminate()


async def require_refused_under_kraft(cluster: RealCluster) -> None:
    held = f"the KRaft controller {KRAFT} holds /controller: no controller of Klamm's takes office"
    for command in (TAKE_OVER, RUN):
        assert await refused(cluster, *command) == f"Error: {held}"
    nothing = f"controller {KRAFT} of KRaft's own is in office: there is nothing to release"
    assert await refused(cluster, "release") == f"Error: {nothing}"


async def restart_brokers(cluster: RealCluster, store: MetadataStore, settings: Mapping[str, str]) -> None:
    """Restart one broker after the other with more settings."""
    for broker in cluster.brokers.values():
        await broker.terminate()
        broker.settings = {**broker.settings, **settings}
        await until(partial(is_gone, store, paths.broker(broker.id)))
        await broker.start()
        await until_in_sync(store, "orders")


async def has_begun(store: MetadataStore) -> bool:
    """Return whether Kafka has begun to migrate."""
    return not await is_gone(store, paths.MIGRATION)


async def writer_of(store: MetadataStore) -> Writer | None:
    """Return the kind of the controller in office."""
    holder = (await read_office(store)).holder
    return None if holder is None else holder.writer


async def is_krafts(store: MetadataStore) -> bool:
    return await writer_of(store) is Writer.KRAFT
