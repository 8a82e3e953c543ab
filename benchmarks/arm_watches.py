"""Arming watches: `ZooKeeperStore.read(watch=True)` compared with kazoo's gets with a watch, in one run.

Both also read the data, and miss no change in between. Kazoo sends one request for each znode, pipelined; we send a
bulk read and then SetWatches. After each round every znode is changed, and each watch of both must have fired once.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from functools import partial
from typing import Final

import trio
from kazoo.client import KazooClient

from benchmarks.kit.cluster import commit_all
from benchmarks.kit.partition_states import create_states, state_of, state_paths
from benchmarks.kit.side_by_side import Comparison, Rates, pipelined, run
from transport.store.protocol import ANY_VERSION, Set, StoreEvent, WatchFired
from transport.store.zookeeper import ZooKeeperStore

WATCHES: Final = 20_000
POLL_SECONDS: Final = 0.01
PATIENCE_SECONDS: Final = 60


def kazoo_watches(client: KazooClient, paths: list[str], fired: Counter[str]) -> None:
    """Read and watch each znode with a request of its own."""

    def count(event: object) -> None:
        fired[event.path] += 1  # type: ignore[attr-defined] # kazoo has no annotations

    for _ in pipelined(client.get_async(path, watch=count) for path in paths):
        pass


async def require_fired(store: ZooKeeperStore, paths: list[str], both: tuple[Counter[str], Counter[str]]) -> None:
    """Change every znode; end the process unless every watch fires exactly once."""
    await commit_all(store, [Set(path, state_of(number), ANY_VERSION) for number, path in enumerate(paths)])
    with trio.move_on_after(PATIENCE_SECONDS):
        while any(fired.total() < len(paths) for fired in both):  # noqa: ASYNC110 - kazoo counts in its own thread
            await trio.sleep(POLL_SECONDS)
    if any(fired != Counter(paths) for fired in both):
        sys.exit("the two ways did not see the same changes")


async def one_round(client: KazooClient, store: ZooKeeperStore, count: int) -> Rates:
    """Arm both ways."""
    paths = state_paths(count)
    theirs, ours = Counter[str](), Counter[str]()

    def fire(event: StoreEvent) -> None:
        if isinstance(event, WatchFired):
            ours[event.path] += 1

    unsubscribe = store.subscribe(fire)
    start = time.perf_counter()
    await trio.to_thread.run_sync(kazoo_watches, client, paths, theirs)
    middle = time.perf_counter()
    await store.read(paths, watch=True)
    end = time.perf_counter()
    await require_fired(store, paths, (theirs, ours))
    unsubscribe()
    return count / (middle - start), count / (end - middle)


if __name__ == "__main__":
    run(
        Comparison(
            f"reading and watching {WATCHES:,} znodes",
            "kazoo get_async(watch=...), pipelined",
            "ZooKeeperStore.read(watch=True)",
            WATCHES,
            partial(create_states, partitions=WATCHES),
            one_round,
        )
    )
