"""Bulk versioned writes of partition states: fenced `commit_chunk` compared with kazoo's pipelined sets, in one run.

Only `commit_chunk` checks the controller's epoch, and its chunks take effect as a whole or not at all.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Final

import trio
from kazoo.client import KazooClient

from benchmarks.kit.partition_states import create_states, state_of, state_paths
from benchmarks.kit.side_by_side import Comparison, Rates, pipelined, run
from transport.store.chunks import plan_chunks
from transport.store.commit import commit_chunk
from transport.store.protocol import Check, Set, Znode
from transport.store.zookeeper import ZooKeeperStore

PARTITIONS: Final = 25_000
FENCE: Final = Check("/brokers/topics", 0)

State = tuple[str, bytes, int]
"""A path, the data to write there, and the expected version."""


def next_states(found: list[Znode | None]) -> list[State]:
    """Return the states that follow those found."""
    paths = state_paths(len(found))
    versions = [znode.stat.version for znode in found if znode is not None]
    numbered = enumerate(zip(paths, versions, strict=True))
    return [(path, state_of(number, version + 1), version) for number, (path, version) in numbered]


def kazoo_sets(client: KazooClient, states: list[State]) -> None:
    """Write each znode with a request of its own."""
    for _ in pipelined(client.set_async(path, data, version) for path, data, version in states):
        pass


async def commit(store: ZooKeeperStore, states: list[State]) -> None:
    """Write in chunks, as the controller does."""
    groups = [[Set(path, data, version)] for path, data, version in states]
    for chunk in plan_chunks(groups):
        await commit_chunk(store, [groups[index] for index in chunk], FENCE)


async def require_written(store: ZooKeeperStore, states: list[State]) -> list[Znode | None]:
    """Read the states again; end the process if they differ from those written."""
    found = await store.read([path for path, _, _ in states])
    expected = [(data, version + 1) for _, data, version in states]
    if expected != [(znode.data, znode.stat.version) for znode in found if znode is not None]:
        sys.exit("the states are not as they were written")
    return found


async def one_round(client: KazooClient, store: ZooKeeperStore, count: int) -> Rates:
    """Write both ways, each over the result of the other."""
    states = next_states(await store.read(state_paths(count)))
    start = time.perf_counter()
    await trio.to_thread.run_sync(kazoo_sets, client, states)
    theirs = time.perf_counter() - start

    states = next_states(await require_written(store, states))
    start = time.perf_counter()
    await commit(store, states)
    ours = time.perf_counter() - start
    await require_written(store, states)
    return count / theirs, count / ours


if __name__ == "__main__":
    run(
        Comparison(
            f"versioned writes of {PARTITIONS:,} partition states",
            "kazoo set_async, pipelined",
            "commit_chunk, fenced",
            PARTITIONS,
            partial(create_states, partitions=PARTITIONS),
            one_round,
        )
    )
