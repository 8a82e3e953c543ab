"""The admin client for programs without an event loop: scripts, notebooks, management commands.

    with open_sync_admin(bootstrap=[("127.0.0.1", 9090)]) as admin:
        admin.alter_partition_reassignments([ReassignablePartition("orders", 0, (4, 5, 6))])

A trio run in a thread of its own holds the client; each method runs that of `AdminClient` there and waits for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import trio
from attrs import frozen

from controller.admin.client import AdminClient
from controller.admin.opening import open_admin
from transport.addresses import Address
from transport.network import Network
from transport.store.security import OPEN, ZooKeeperSecurity

if TYPE_CHECKING:
    from controller.admin.kafka_admin import KafkaAdmin

P = ParamSpec("P")
R = TypeVar("R")


def _blocking(
    method: Callable[Concatenate[AdminClient, P], Awaitable[R]],
) -> Callable[Concatenate[SyncAdminClient, P], R]:
    @wraps(method)
    def call(client: SyncAdminClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # A client of Kafka has a method of the same name.
        own: Callable[P, Awaitable[R]] = getattr(client.admin, method.__name__)
        # Exceptions of the method are raised here. A KeyboardInterrupt stops the wait; the end of the block the rest.
        return trio.from_thread.run(partial(own, *args, **kwargs), trio_token=client.token)

    return call


@frozen
class SyncAdminClient:
    """Describes and changes a cluster, from any thread. Open one with `open_sync_admin`."""

    admin: AdminClient | KafkaAdmin
    token: trio.lowlevel.TrioToken

    cluster_id = _blocking(AdminClient.cluster_id)
    read_metadata = _blocking(AdminClient.read_metadata)
    visibility = _blocking(AdminClient.visibility)
    describe_cluster = _blocking(AdminClient.describe_cluster)
    create_topics = _blocking(AdminClient.create_topics)
    create_partitions = _blocking(AdminClient.create_partitions)
    delete_topics = _blocking(AdminClient.delete_topics)
    alter_partition_reassignments = _blocking(AdminClient.alter_partition_reassignments)
    list_partition_reassignments = _blocking(AdminClient.list_partition_reassignments)
    list_reassignments = _blocking(AdminClient.list_reassignments)
    describe_reassignments = _blocking(AdminClient.describe_reassignments)
    elect_leaders = _blocking(AdminClient.elect_leaders)
    describe_configs = _blocking(AdminClient.describe_configs)
    incremental_alter_configs = _blocking(AdminClient.incremental_alter_configs)
    describe_log_dirs = _blocking(AdminClient.describe_log_dirs)
    upload_rollout = _blocking(AdminClient.upload_rollout)
    start_rollout = _blocking(AdminClient.start_rollout)
    describe_rollouts = _blocking(AdminClient.describe_rollouts)
    change_rollout = _blocking(AdminClient.change_rollout)
    find_controller = _blocking(AdminClient.find_controller)
    read_trace = _blocking(AdminClient.read_trace)


@contextmanager
def open_sync_admin(
    *,
    bootstrap: Sequence[Address] = (),
    zookeeper_connect: str | None = None,
    zookeeper_security: ZooKeeperSecurity = OPEN,
    network: Network | None = None,
    timeout: float = 30.0,
) -> Iterator[SyncAdminClient]:
    """Open an admin client for the block. See `open_admin` for the arguments and the exceptions raised."""
    opening = open_admin(
        bootstrap=bootstrap,
        zookeeper_connect=zookeeper_connect,
        zookeeper_security=zookeeper_security,
        network=network,
        timeout=timeout,
    )
    opened: Future[tuple[SyncAdminClient, trio.Event]] = Future()
    with ThreadPoolExecutor(1, "klamm-admin") as pool:
        held = pool.submit(trio.run, _hold, opening, opened)
        futures: list[Future[Any]] = [opened, held]
        wait(futures, return_when=FIRST_COMPLETED)
        if held.done():
            held.result()
        client, closing = opened.result()
        try:
            yield client
        finally:
            client.token.run_sync_soon(closing.set)


async def _hold(
    opening: AbstractAsyncContextManager[AdminClient | KafkaAdmin], opened: Future[tuple[SyncAdminClient, trio.Event]]
) -> None:
    async with opening as admin:
        closing = trio.Event()
        opened.set_result((SyncAdminClient(admin, trio.lowlevel.current_trio_token()), closing))
        await closing.wait()
