"""Two ways to do the same on one ZooKeeper of our own: kazoo's and ours, in alternating rounds of one run."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import trio
from attrs import frozen
from kazoo.client import KazooClient

from transport.store.zookeeper import ZooKeeperStore, open_zookeeper
from transport.zookeeper_server import DevelopmentServerError, development_zookeeper

ROUNDS: Final = 3
WARM_UP: Final = 10_000
WINDOW: Final = 1000
"""Requests of kazoo's that are under way at all times."""

Rates = tuple[float, float]
Round = Callable[[KazooClient, ZooKeeperStore, int], Awaitable[Rates]]


@frozen
class Comparison:
    """What is done with `count` znodes, and the names of the two ways.

    `prepare` makes the znodes; `one_round` does it both ways with so many of them, kazoo's first, ends the process
    if they did not do the same, and returns both rates in znodes per second.
    """

    title: str
    theirs: str
    ours: str
    count: int
    prepare: Callable[[ZooKeeperStore], Awaitable[None]]
    one_round: Round


def pipelined(requests: Iterable[Any]) -> Iterator[Any]:
    """Yield the replies to requests of kazoo's, a window of which is under way at all times."""
    under_way: deque[Any] = deque()
    for request in requests:
        if len(under_way) == WINDOW:
            yield under_way.popleft().get()
        under_way.append(request)
    yield from (request.get() for request in under_way)


def run(comparison: Comparison) -> None:
    """Measure on a server of our own, and print one row."""
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    try:
        theirs, ours = trio.run(_measure, comparison)
    except DevelopmentServerError as error:
        sys.exit(str(error))
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
