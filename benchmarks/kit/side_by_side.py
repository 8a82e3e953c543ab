"""Kazoo's way and ours of doing the same, measured on one ZooKeeper in alternating rounds of one run."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import trio
from attrs import frozen
from kazoo.client import KazooClient

from benchmarks.kit import command, figures
from transport.store.zookeeper import ZooKeeperStore, open_zookeeper
from transport.zookeeper_server import development_zookeeper

ROUNDS: Final = 3
WARM_UP: Final = 10_000
WINDOW: Final = 1000
"""The number of kazoo's requests in flight."""

Rates = tuple[float, float]
Round = Callable[[KazooClient, ZooKeeperStore, int], Awaitable[Rates]]


@frozen
class Comparison:
    """A task with `count` znodes, and the names of the two ways.

    `prepare` creates the znodes. `one_round` performs the task both ways on a number of them, kazoo's way first, and
    returns both rates in znodes per second; it ends the process if the results differ.
    """

    title: str
    theirs: str
    ours: str
    count: int
    prepare: Callable[[ZooKeeperStore], Awaitable[None]]
    one_round: Round


def pipelined(requests: Iterable[Any]) -> Iterator[Any]:
    """Yield the replies to kazoo's requests, with a window of them in flight."""
    under_way: deque[Any] = deque()
    for request in requests:
        if len(under_way) == WINDOW:
            yield under_way.popleft().get()
        under_way.append(request)
    yield from (request.get() for request in under_way)


def run(comparison: Comparison) -> None:
    """Measure on a separate server, and print one row."""
    theirs, ours = command.on_zookeeper(_measure, comparison)
    figures.note(comparison.title, "s", comparison.count / ours)
    names = (comparison.title, f"{comparison.theirs}, znodes/s", f"{comparison.ours}, znodes/s", "ratio")
    row = (f"median of {ROUNDS}", f"{theirs:,.0f}", f"{ours:,.0f}", f"{ours / theirs:.0f}x")
    for cells in (names, ("---",) * len(names), row):
        print(f"| {' | '.join(cells)} |", flush=True)


async def _measure(comparison: Comparison) -> Rates:
    with tempfile.TemporaryDirectory() as directory:
        async with development_zookeeper(Path(directory)) as server, open_zookeeper(server.address) as store:
            client = KazooClient(server.address)
            await trio.to_thread.run_sync(client.start)
            try:
                await comparison.prepare(store)
                await comparison.one_round(client, store, min(WARM_UP, comparison.count))
                rounds = [await comparison.one_round(client, store, comparison.count) for _ in range(ROUNDS)]
            finally:
                await trio.to_thread.run_sync(client.stop)
    theirs, ours = zip(*rounds, strict=True)
    return median(theirs), median(ours)
