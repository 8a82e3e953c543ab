"""Bulk read of partition states: `ZooKeeperStore.read` against kazoo's own pipelined gets, in one run."""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from statistics import median
from typing import Any, Final

import trio
from kazoo.client import KazooClient

from transport.store.protocol import Create, MetadataStore, Znode, ensure_paths
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import DevelopmentServerError, development_zookeeper

PARTITIONS: Final = 100_000
PARTITIONS_PER_TOPIC: Final = 100
OPS_PER_MULTI: Final = 500
WINDOW: Final = 1000
ROUNDS: Final = 3
WARM_UP: Final = 10_000


def topic_names() -> list[str]:
    """Name the topics."""
    return [f"topic-{number:04}" for number in range(PARTITIONS // PARTITIONS_PER_TOPIC)]


def state_paths() -> list[str]:
    """List the paths of all partition states."""
    partitions = range(PARTITIONS_PER_TOPIC)
    return [f"/brokers/topics/{topic}/partitions/{number}/state" for topic in topic_names() for number in partitions]


def state_of(number: int) -> bytes:
    """Return a partition's state as Kafka writes it."""
    leader = number % 300
    isr = f"{leader},{leader + 1},{leader + 2}"
    text = f'{{"controller_epoch":7,"leader":{leader},"version":1,"leader_epoch":{number % 50},"isr":[{isr}]}}'
    return text.encode()


async def write_states(store: MetadataStore, paths: list[str]) -> None:
    """Create the states and all that is above them."""
    await ensure_paths(store, ["/brokers/topics"])
    topics = [f"/brokers/topics/{topic}" for topic in topic_names()]
    ops = [Create(path) for path in topics]
    ops += [Create(f"{path}/partitions") for path in topics]
    ops += [Create(path.removesuffix("/state")) for path in paths]
    ops += [Create(path, state_of(number)) for number, path in enumerate(paths)]
    for start in range(0, len(ops), OPS_PER_MULTI):
        await store.multi(ops[start : start + OPS_PER_MULTI])


def kazoo_gets(client: KazooClient, paths: list[str]) -> list[bytes]:
    """Read with `get_async`, a window of requests under way at all times."""
    pending: deque[Any] = deque()
    found = []
    for path in paths:
        if len(pending) == WINDOW:
            found.append(pending.popleft().get()[0])
        pending.append(client.get_async(path))
    return found + [result.get()[0] for result in pending]


async def one_round(client: KazooClient, store: MetadataStore, paths: list[str]) -> tuple[float, float]:
    """Read all paths both ways, kazoo's first, and return both rates in znodes per second."""
    start = time.perf_counter()
    gets = await trio.to_thread.run_sync(kazoo_gets, client, paths)
    middle = time.perf_counter()
    read = await store.read(paths)
    end = time.perf_counter()
    if gets != [znode.data for znode in read if isinstance(znode, Znode)]:
        sys.exit("the two ways did not read the same data")
    return len(paths) / (middle - start), len(paths) / (end - middle)


async def measure(address: str) -> tuple[float, float]:
    """Return the medians of both rates over alternating rounds, on a server that has warmed up."""
    paths = state_paths()
    client = KazooClient(address)
    await trio.to_thread.run_sync(client.start)
    try:
        async with open_zookeeper(address) as store:
            await write_states(store, paths)
            await one_round(client, store, paths[:WARM_UP])
            rounds = [await one_round(client, store, paths) for _ in range(ROUNDS)]
    finally:
        await trio.to_thread.run_sync(client.stop)
    theirs, ours = zip(*rounds, strict=True)
    return median(theirs), median(ours)


async def main() -> None:
    """Measure on a server of our own and print one row."""
    with tempfile.TemporaryDirectory() as directory:
        async with development_zookeeper(Path(directory)) as server:
            theirs, ours = await measure(server.address)
    print(
        "| bulk read of 100,000 partition states | kazoo get_async, znodes/s | ZooKeeperStore.read, znodes/s | ratio |"
    )
    print("| --- | --- | --- | --- |")
    print(f"| median of {ROUNDS} | {theirs:,.0f} | {ours:,.0f} | {ours / theirs:.0f}x |")


if __name__ == "__main__":
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    try:
        trio.run(main)
    except DevelopmentServerError as error:
        sys.exit(str(error))
