"""Clients are told the same of a cluster by real brokers and by a controller of ours, at every kind of listener."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from confluent_kafka.admin import AdminClient
from msgspec.structs import replace

from tests.kafka import jars
from tests.kafka.cluster_security import ADMIN, BROKER, CLIENT, CONTROLLER, ClusterSecurity, write_acl
from tests.kafka.real_cluster import FIRST, RealCluster, Starting, real_cluster, until
from tests.kafka.told_metadata import in_order, told_metadata
from tests.kit.certificates import authority
from transport.acls import Operation
from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.metadata_request import MetadataRequestTopic
from transport.metadata import SecurityProtocol
from transport.network import Network, TcpNetwork
from transport.store.zookeeper import open_zookeeper

pytestmark = pytest.mark.soak
LAST: Final = 12
"""The last version of Metadata."""

NO_AUTO_CREATION, OPERATIONS, CLUSTER_OPERATIONS, IDS = 4, 8, range(8, 11), 10
"""The versions of Metadata that have these first."""

NOBODYS: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
USERS: Final = (ADMIN, CLIENT, BROKER, CONTROLLER)
SECONDS: Final = 30
TIMES: Final = 20
TOPICS: Final = 3


@pytest.fixture(params=[None, SecurityProtocol.SASL_SSL, SecurityProtocol.SSL], ids=["open", "scram", "certificates"])
async def shown(
    request: pytest.FixtureRequest, kafka_jars: Path, zookeeper: str, tmp_path: Path
) -> AsyncIterator[RealCluster]:
    """Give the test three brokers under a controller that clients see."""
    assert kafka_jars.name == jars.RELEASE
    known = authority(tmp_path / "known") if request.param else None
    security = ClusterSecurity(request.param, known) if known else None
    starting = Starting(are_shown=True)
    address = f"{zookeeper}/{tmp_path.name}"
    async with real_cluster(address, tmp_path, security=security, starting=starting) as running:
        yield running


def metadata_requests(version: int, topic_id: str) -> Iterator[kafka.MetadataRequest]:
    """Yield questions of each kind that a version has, with all that may be asked beside them."""
    known = tuple(MetadataRequestTopic(name=name) for name in ("orders", "alone"))
    unknown = tuple(MetadataRequestTopic(name=name) for name in ("nosuch", "no such", "__consumer_offsets", "", "."))
    flags: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= NO_AUTO_CREATION else {}
    if version >= OPERATIONS:
        flags["include_topic_authorized_operations"] = True
    if version in CLUSTER_OPERATIONS:
        flags["include_cluster_authorized_operations"] = True
    lists: list[tuple[MetadataRequestTopic, ...] | None] = [(), known, (*known, *known)]
    lists += [None] if version else []
    lists += [(*known, *unknown)] if version >= NO_AUTO_CREATION else []
    if version >= IDS:
        by_id = tuple(MetadataRequestTopic(id_, None) for id_ in (topic_id, NOBODYS))
        lists += [
            by_id,
            (*by_id, *known),
            (MetadataRequestTopic(topic_id, "orders"),),
            (MetadataRequestTopic("", None),),
        ]
    for topics in lists:
        yield kafka.MetadataRequest(topics)
        if flags:
            yield kafka.MetadataRequest(topics, **flags)


async def ask(network: Network, address: str, topic_id: str) -> dict[str, Any]:
    """Return what a node answers to all questions, in order."""
    host, _, port = address.rpartition(":")
    told: dict[str, Any] = {}
    async with open_kafka_connection(network, host, int(port), client_id="client") as client:
        for version in range(LAST + 1):
            for request in metadata_requests(version, topic_id):
                if version < NO_AUTO_CREATION or not request.allow_auto_topic_creation or request.topics is None:
                    answer = await client.send(request, kafka.MetadataResponse, version)
                    told[f"{version} {request}"] = in_order(answer)
        for version, kind in ((0, 1), (1, 1), (1, 2), (1, 9)):
            about = kafka.DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=kind)
            cluster = await client.send(about, kafka.DescribeClusterResponse, version)
            brokers = tuple(sorted(cluster.brokers, key=lambda one: one.broker_id))
            told[f"{version} {about}"] = replace(cluster, brokers=brokers)
    return told


async def do_agree(network: Network, *addresses: str) -> bool:
    """Return whether nodes tell the same of all topics."""
    first, *others = [await told_metadata(network, address) for address in addresses]
    return all(other == first for other in others)


async def require_agreement(cluster: RealCluster, ours: str, topic_id: str, *broker_ids: int) -> int:
    """Require that brokers and the controller answer each question alike; return the number of questions."""
    nodes = [ours, *(cluster.clients[id_] for id_ in broker_ids)]
    await until(partial(do_agree, network_of(cluster, ADMIN), *nodes))
    count = 0
    for user in USERS if cluster.security else (ADMIN,):
        found, *expected = [await ask(network_of(cluster, user), address, topic_id) for address in nodes]
        for one in expected:
            assert found == one
        count += len(found)
    return count


def network_of(cluster: RealCluster, user: str) -> Network:
    return TcpNetwork() if cluster.security is None else cluster.security.network_of(user)


async def test_brokers_and_the_controller_tell_the_same(shown: RealCluster) -> None:
    await shown.create("orders", (1, 2), (2, 3), (3, 1))
    await shown.create("alone", (3,))
    await shown.create("going", (3, 1))
    if shown.security is not None:
        async with open_zookeeper(shown.zookeeper) as store:
            await write_acl(store, "Topic/alone", (shown.security.principal(BROKER), Operation.READ))
    network = network_of(shown, ADMIN)

    async def is_told() -> bool:
        return len((await told_metadata(network, shown.clients[1])).topics) == TOPICS

    await until(is_told)
    told = await told_metadata(network, shown.clients[1])
    assert [node.node_id for node in told.brokers] == [1, 2, 3, FIRST]
    [ours] = [f"{node.host}:{node.port}" for node in told.brokers if node.node_id == FIRST]
    [topic_id] = [topic.topic_id for topic in told.topics if topic.name == "orders"]
    asked = [await require_agreement(shown, ours, topic_id, 1, 2, 3)]
    shown.brokers[3].kill()
    await shown.until_registered(1, 2)
    asked.append(await require_agreement(shown, ours, topic_id, 1, 2))
    await shown.admin.delete_topics(["going"])
    asked.append(await require_agreement(shown, ours, topic_id, 1, 2))
    await trio.to_thread.run_sync(list_topics, shown, ours)
    sys.stdout.write(f"{sum(asked)} questions were answered alike\n")


def list_topics(cluster: RealCluster, ours: str) -> None:
    """Require that librdkafka is told of the cluster by whichever node it asks, each time."""
    settings = {} if cluster.security is None else cluster.security.of_client()
    for servers in [ours, cluster.clients[1]] * TIMES:
        admin = AdminClient({"bootstrap.servers": servers, **settings})
        told = admin.list_topics(timeout=SECONDS)
        assert (set(told.brokers), told.controller_id) == ({1, 2, FIRST}, FIRST)
        assert {"orders", "alone"} <= told.topics.keys()
        assert set(admin.list_topics("orders", timeout=SECONDS).topics["orders"].partitions) == {0, 1, 2}
        cluster_told = admin.describe_cluster(request_timeout=SECONDS).result()
        assert {node.id for node in cluster_told.nodes} == {1, 2, FIRST}
