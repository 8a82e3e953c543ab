"""Bulk reads of partition states: `ZooKeeperStore.read` compared with kazoo's pipelined gets, in one run."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Final

import trio
from kazoo.client import KazooClient

from benchmarks.kit.partition_states import create_states, state_paths
from benchmarks.kit.side_by_side import Comparison, Rates, pipelined, run
from transport.store.protocol import Znode
from transport.store.zookeeper import ZooKeeperStore

PARTITIONS: Final = 100_000


def kazoo_gets(client: KazooClient, paths: list[str]) -> list[bytes]:
    """Read each znode with a request of its own."""
    return [data for data, _ in pipelined(client.get_async(path) for path in paths)]


async def one_round(client: KazooClient, store: ZooKeeperStore, count: int) -> Rates:
    """Read both ways."""
    paths = state_paths(count)
    start = time.perf_counter()
    gets = await trio.to_thread.run_sync(kazoo_gets, client, paths)
    middle = time.perf_counter()
    read = await store.read(paths)
    end = time.perf_counter()
    if gets != [znode.data for znode in read if isinstance(znode, Znode)]:
        sys.exit("the two ways did not read the same data")
    return count / (middle - start), count / (end - middle)


if __name__ == "__main__":
    run(
        Comparison(
            f"bulk read of {PARTITIONS:,} partition states",
            "kazoo get_async, pipelined",
            "ZooKeeperStore.read",
            PARTITIONS,
            partial(create_states, partitions=PARTITIONS),
            one_round,
        )
    )
