"""Clusters of Apache Kafka's alone, under KRaft: nodes that are brokers and controllers at once, as processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from tests.kafka import jars
from tests.kafka.real_brokers import RealBroker
from transport.zookeeper_server import HOST, free_port

RELEASE: Final = jars.KRAFT
CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qg"

SETTINGS: Final = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "file.delete.delay.ms": "500",
}


@frozen
class Cluster:
    """The nodes of a running cluster, by id."""

    nodes: dict[int, RealBroker]

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes."""
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes.values())


@asynccontextmanager
async def kraft_cluster(
    directory: Path,
    count: int,
    *,
    release: str = RELEASE,
    settings: Mapping[str, str] | None = None,
    listeners: Mapping[str, int] | None = None,
    heap: str = "256m",
) -> AsyncIterator[Cluster]:
    """Run nodes 1 to `count` in a folder until the end of the block. They listen when the block begins.

    A single node may have more `listeners`, by their names at ports.
    """
    controllers = {id_: free_port() for id_ in range(1, count + 1)}
    voters = ",".join(f"{id_}@{HOST}:{port}" for id_, port in controllers.items())
    common = SETTINGS | {"controller.quorum.voters": voters} | dict(settings or {})
    nodes = {
        id_: _node(id_, port, directory / f"node-{id_}", common, release, heap) for id_, port in controllers.items()
    }
    if listeners:
        [node] = nodes.values()
        more = (f"{name}://{HOST}:{port}" for name, port in listeners.items())
        node.settings = {**node.settings, "listeners": ",".join([node.settings["listeners"], *more])}
    try:
        async with trio.open_nursery() as nursery:
            for node in nodes.values():
                nursery.start_soon(partial(node.start, records=True))
        yield Cluster(nodes)
    finally:
        with trio.CancelScope(shield=True):
            for node in nodes.values():
                await node.end()


def _node(id_: int, controller: int, directory: Path, common: Mapping[str, str], release: str, heap: str) -> RealBroker:
    port = free_port()
    own = {"node.id": str(id_), "broker.rack": f"r{id_}"}
    own["listeners"] = f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}"
    node = RealBroker(id_, jars.folder(release), "", directory, {**own, **common}, port, heap)
    for data in node.log_dirs:
        data.mkdir(parents=True)
        (data / "meta.properties").write_text(f"version=1\nnode.id={id_}\ncluster.id={CLUSTER_ID}\n")
    return node
