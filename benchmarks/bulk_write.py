"""Bulk versioned writes of partition states: fenced `commit_chunk` against kazoo's own pipelined sets, in one run.

Ours checks the controller's epoch with every chunk, which kazoo's sets do not; a chunk takes effect whole or not.
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
"""A path, what to write there, and the version that is expected there."""


def next_states(found: list[Znode | None]) -> list[State]:
    """Make the states that follow those that were found."""
    paths = state_paths(len(found))
    versions = [znode.stat.version for znode in found if znode is not None]
    numbered = enumerate(zip(paths, versions, strict=True))
    return [(path, state_of(number, version + 1), version) for number, (path, version) in numbered]


def kazoo_sets(client: KazooClient, states: list[State]) -> None:
    """Write with a request for each."""
    for _ in pipelined(client.set_async(path, data, version) for path, data, version in states):
        pass


async def commit(store: ZooKeeperStore, states: list[State]) -> None:
    """Write in chunks, as the controller does."""
    groups = [[Set(path, data, version)] for path, data, version in states]
    for chunk in plan_chunks(groups):
        await commit_chunk(store, [groups[index] for index in chunk], FENCE)


async def require_written(store: ZooKeeperStore, states: list[State]) -> list[Znode | None]:
    """Read the states again; end the process if they are not as written."""
    found = await store.read([path for path, _, _ in states])
    expected = [(data, version + 1) for _, data, version in states]
    if expected != [(znode.data, znode.stat.version) for znode in found if znode is not None]:
        sys.exit("the states are not as they were written")
    return found


async def one_round(client: KazooClient, store: ZooKeeperStore, count: int) -> Rates:
    """Write both ways, each upon what the other wrote."""
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
