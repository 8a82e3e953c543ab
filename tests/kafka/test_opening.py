"""`open_admin` and `open_sync_admin` find out whether a cluster is Klamm's or Apache Kafka."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio

import klamm
from simulator.administration import ADMIN
from simulator.cluster import simulated_cluster
from simulator.scheduling import run
from simulator.settings import CONTROLLERS, PORT, Settings
from tests.kafka import jars
from tests.kafka.kraft_cluster import RELEASE as KRAFT, kraft_cluster
from tests.kafka.real_brokers import real_broker
from tests.kafka.real_cluster import until
from tests.kafka.releases import require_jars
from tests.kafka.scripted_nodes import HOST, ScriptedNode, scripted_nodes
from tests.kit.ports import lasting_port
from tests.kit.service import Controllers
from transport.kafka import messages as kafka
from transport.messages import (
    BrokerEndpoint,
    ConfigResource,
    ConfigResourceType,
    NewPartitions,
    NewTopic,
    ReassignablePartition,
    RolloutOrder,
    RolloutSettings,
)
from transport.network import TcpNetwork

CONTROLLER: Final = BrokerEndpoint(1, HOST, 1)

KLAMM_ONLY: Final[dict[str, tuple[object, ...]]] = {
    "list_reassignments": (),
    "upload_rollout": ("monday", "digest", ()),
    "start_rollout": ("monday", "digest", 0, RolloutSettings()),
    "describe_rollouts": (),
    "describe_rollout_moves": ("monday",),
    "change_rollout": ("monday", RolloutOrder.PAUSE),
    "read_trace": (CONTROLLER, 0, 0),
}
"""The calls that Kafka cannot answer, with arguments."""


def public_methods(kind: type) -> dict[str, Callable[..., Any]]:
    return {name: each for name, each in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_the_client_of_kafka_clusters_has_all_methods() -> None:
    own, kafkas = public_methods(klamm.AdminClient), public_methods(klamm.KafkaAdmin)
    assert own.keys() <= kafkas.keys()
    # Whatever Kafka can answer takes the same arguments.
    shared = own.keys() - KLAMM_ONLY.keys()
    parameters = [{name: [*inspect.signature(of[name]).parameters] for name in shared} for of in (own, kafkas)]
    assert parameters[0] == parameters[1]


async def test_brokers_of_kafka_are_recognized() -> None:
    async with scripted_nodes(1, 2) as cluster, klamm.open_admin(bootstrap=cluster.bootstrap) as admin:
        cluster.show("orders", (1, 2))
        assert isinstance(admin, klamm.KafkaAdmin)
        [state] = (await admin.read_metadata(["orders"])).partitions
        assert state.replicas == (1, 2)
        assert await admin.find_controller() == BrokerEndpoint(1, HOST, cluster.nodes[1].port, "r1")
        assert await admin.list_partition_reassignments() == ()
        assert await admin.describe_reassignments() == {}


@pytest.mark.parametrize("name", KLAMM_ONLY)
async def test_a_call_that_kafka_cannot_answer_raises_one_error(name: str) -> None:
    async with scripted_nodes(1) as cluster, klamm.open_admin(bootstrap=cluster.bootstrap) as admin:
        with pytest.raises(klamm.UnsupportedApi, match=f"the brokers are Apache Kafka, which cannot answer {name}: "):
            await getattr(admin, name)(*KLAMM_ONLY[name])


async def test_reassignments_of_kafka_cannot_be_named() -> None:
    async with scripted_nodes(1) as cluster, klamm.open_admin(bootstrap=cluster.bootstrap) as admin:
        with pytest.raises(klamm.UnsupportedApi, match="cannot answer describe_reassignments of some"):
            await admin.describe_reassignments([])


async def test_brokers_that_name_no_controller() -> None:
    async with scripted_nodes(1) as cluster, klamm.open_admin(bootstrap=cluster.bootstrap) as admin:
        cluster.controller = -1
        with pytest.raises(klamm.ClusterUnreachable, match="the brokers name no active controller"):
            await admin.find_controller()


async def test_controllers_of_klamm_are_recognized(controllers: Controllers) -> None:
    service = await controllers.start_active()
    address = (service.endpoint.host, service.endpoint.port)
    async with klamm.open_admin(bootstrap=[address]) as admin:
        assert isinstance(admin, klamm.AdminClient)
        assert await admin.describe_rollouts() == ()


async def test_a_cluster_that_is_starting_is_waited_for() -> None:
    node = ScriptedNode(1, {kafka.MetadataRequest: kafka.MetadataResponse()})
    port = lasting_port()

    async def start_later() -> None:
        await trio.sleep(0.5)
        await nursery.start(TcpNetwork().serve, node.serve, HOST, port)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(start_later)
        async with klamm.open_admin(bootstrap=[(HOST, port)], timeout=10) as admin:
            assert isinstance(admin, klamm.KafkaAdmin)
        nursery.cancel_scope.cancel()


async def test_nothing_that_listens_is_no_cluster() -> None:
    with pytest.raises(klamm.ClusterUnreachable, match="nothing listens there"):
        async with klamm.open_admin(bootstrap=[(HOST, lasting_port())], timeout=0.5):
            pass


def by_script(bootstrap: Sequence[tuple[str, int]]) -> tuple[list[str], str]:
    """Do what a script would: no await anywhere."""
    with klamm.open_sync_admin(bootstrap=bootstrap) as admin:
        topics = sorted({state.topic for state in admin.read_metadata().partitions})
        try:
            admin.describe_rollouts()
        except klamm.UnsupportedApi as error:
            return topics, str(error)
    return topics, ""


async def test_a_script_reads_a_cluster_of_kafka() -> None:
    async with scripted_nodes(1) as cluster:
        cluster.show("orders", (1,))
        topics, refusal = await trio.to_thread.run_sync(by_script, cluster.bootstrap)
        assert topics == ["orders"]
        assert "cannot answer describe_rollouts" in refusal


def test_simulated_brokers_of_kafka_are_recognized_and_their_controller() -> None:
    async def story() -> list[type]:
        kinds: list[type] = []
        async with simulated_cluster(Settings(brokers=1, controllers=1, releases=("3.9",))) as cluster:
            for host in ("broker-1", f"controller-{CONTROLLERS[0]}"):
                network = cluster.world.network.at(ADMIN)
                async with klamm.open_admin(bootstrap=[(host, PORT)], network=network) as admin:
                    kinds.append(type(admin))
        return kinds

    assert run(story, seed=1) == [klamm.KafkaAdmin, klamm.AdminClient]


# --- real brokers -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def broker_on_zookeeper(zookeeper: str, directory: Path) -> AsyncIterator[list[tuple[str, int]]]:
    """Run a broker of Kafka 3.9 whose controller is its own."""
    folder = jars.folder(jars.RELEASE)
    async with real_broker(folder, f"{zookeeper}/opening-{directory.name}", 1, directory) as broker:
        yield [(HOST, broker.port)]


@asynccontextmanager
async def node_of_kraft(directory: Path) -> AsyncIterator[list[tuple[str, int]]]:
    """Run a node of Kafka 4.1."""
    async with kraft_cluster(directory, 1) as cluster:
        yield [(HOST, node.port) for node in cluster.nodes.values()]


@pytest.mark.real_kafka
@pytest.mark.parametrize("release", [jars.RELEASE, KRAFT])
async def test_a_real_cluster_of_kafka_is_administered(release: str, zookeeper: str, tmp_path: Path) -> None:
    require_jars(release)
    starting = node_of_kraft(tmp_path) if release == KRAFT else broker_on_zookeeper(zookeeper, tmp_path)
    async with starting as bootstrap, klamm.open_admin(bootstrap=bootstrap) as admin:
        await administer(admin)
        topics, refusal = await trio.to_thread.run_sync(by_script, bootstrap)
        assert topics == ["orders"]
        assert "cannot answer describe_rollouts" in refusal
        [deleted] = (await admin.delete_topics(["orders"])).topics
        assert deleted.error is klamm.ErrorCode.NONE


async def administer(admin: klamm.AdminClient | klamm.KafkaAdmin) -> None:
    """Make the calls of administrators that Kafka can answer."""
    await until(partial(_has_brokers, admin))
    [created] = (await admin.create_topics([NewTopic("orders", 1, 1)])).topics
    assert created.error is klamm.ErrorCode.NONE
    await until(partial(_has_leader, admin))
    [broker] = [one.endpoint for one in (await admin.describe_cluster()).brokers]
    assert (await admin.find_controller()).id == broker.id
    [grown] = (await admin.create_partitions([NewPartitions("orders", 2)])).topics
    assert grown.error is klamm.ErrorCode.NONE
    [moved] = (await admin.alter_partition_reassignments([ReassignablePartition("orders", 0, (broker.id,))])).partitions
    assert moved.error is klamm.ErrorCode.NONE
    assert await admin.list_partition_reassignments() == ()
    assert await admin.describe_reassignments() == {}
    [settings] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "orders")])
    assert "min.insync.replicas" in {entry.name for entry in settings.entries}
    directories = await admin.describe_log_dirs()
    assert [*directories] == [broker.id]
    assert not directories[broker.id].fault


async def _has_brokers(admin: klamm.AdminClient | klamm.KafkaAdmin) -> bool:
    return bool((await admin.read_metadata([])).brokers)


async def _has_leader(admin: klamm.AdminClient | klamm.KafkaAdmin) -> bool:
    states = (await admin.read_metadata(["orders"])).partitions
    return bool(states) and all(state.leader >= 0 for state in states)
