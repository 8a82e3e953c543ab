"""The admin client of any cluster: of Klamm's controllers and brokers, or of Apache Kafka, KRaft included."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from controller.admin.active_controller import MAX_RETRY_SECONDS, RETRY_SECONDS, ClusterUnreachable
from controller.admin.client import AdminClient, open_klamm_admin
from controller.admin.recognition import Protocol, recognize
from transport.addresses import Address
from transport.network import Network, TcpNetwork
from transport.store.security import OPEN, ZooKeeperSecurity

if TYPE_CHECKING:
    from controller.admin.kafka_admin import KafkaAdmin


@asynccontextmanager
async def open_admin(
    *,
    bootstrap: Sequence[Address] = (),
    zookeeper_connect: str | None = None,
    zookeeper_security: ZooKeeperSecurity = OPEN,
    network: Network | None = None,
    timeout: float = 30.0,  # noqa: ASYNC109  of each call, not of the whole block
    waits: bool = True,
) -> AsyncIterator[AdminClient | KafkaAdmin]:
    """Open an admin client of the cluster that the nodes at `bootstrap` belong to, or that is in ZooKeeper.

    The nodes are asked for their protocol. Where they are brokers of Apache Kafka, the client is a `KafkaAdmin`: it has
    the methods of `AdminClient`, and raises UnsupportedApi in those that Kafka cannot answer. Through ZooKeeper, the
    client finds the active controller of Klamm.

    `timeout` limits opening and each call, in seconds. Unless the client `waits`, opening fails at once where no node
    listens at any of the addresses.

    Raises ClusterUnreachable if none of the addresses has a node; StoreUnavailable if ZooKeeper cannot be reached,
    NoCluster if it holds no cluster.
    """
    network = network or TcpNetwork()
    patience = timeout if waits else 0.0
    if zookeeper_connect is None and await _recognized(bootstrap, network, patience) is Protocol.KAFKA:
        # The classes of Kafka's messages take a while to import.
        from controller.admin.kafka_admin import open_kafka_admin  # noqa: PLC0415

        async with open_kafka_admin(network, bootstrap, timeout) as kafka:
            yield kafka
        return
    opening = open_klamm_admin(
        bootstrap=bootstrap,
        zookeeper_connect=zookeeper_connect,
        zookeeper_security=zookeeper_security,
        network=network,
        timeout=timeout,
    )
    async with opening as own:
        yield own


async def _recognized(bootstrap: Sequence[Address], network: Network, patience: float) -> Protocol:
    """Return the protocol of a cluster, which may still be starting. Raises ClusterUnreachable."""
    deadline, pause = trio.current_time() + patience, RETRY_SECONDS
    while True:
        try:
            return await recognize(bootstrap, network)
        except ClusterUnreachable:
            if trio.current_time() >= deadline:
                raise
        await trio.sleep(min(pause, max(0.0, deadline - trio.current_time())))
        pause = min(2 * pause, MAX_RETRY_SECONDS)
