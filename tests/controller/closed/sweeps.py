"""Runs a scenario again and again, each time with another path closed that the controller writes in it.

However the path is closed, either an answer is an error, or the effect is there after a failover, once the path is open
again. What must never be is not there at any time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from attrs import frozen

from controller.events import ReplicasDeleted
from tests.controller.conftest import Bench, new_bench
from tests.kit.told import Stop
from transport.errors import ApiError, ErrorCode
from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.commit import parent_of
from transport.store.protocol import Check, Create, Delete, Op, StoreError
from transport.store.tree import Access

Errors = Iterable[ErrorCode]

OTHER: Final = TopicPartition("orders", 1)

MOST_ORDERS: Final = 5
"""How often brokers obey: some orders come only when others have been obeyed."""


@frozen
class Scenario:
    """Something that a controller does, and whether it is done.

    `prepare` and `act` get the bench; `act` returns the errors of the answers. `is_done` is asked of the last
    controllership, and `check` fails the test if something is there that must never be.
    """

    prepare: Callable[[Bench], Awaitable[None]]
    act: Callable[[Bench], Awaitable[Errors]]
    is_done: Callable[[Bench], Awaitable[bool]]
    check: Callable[[Bench], Awaitable[None]] | None = None


async def rounds_of(scenario: Scenario) -> set[str]:
    """Return the rounds that a scenario commits with all paths open."""
    async with _prepared(scenario) as bench:
        await scenario.act(bench)
        return {name for name in bench.seen.rounds if not name.startswith("(")}


async def sweep(scenario: Scenario) -> int:
    """Run a scenario with all paths open, then with each closed; return how often it ran.

    Raises AssertionError if a write that was rejected was taken for done.
    """
    async with _prepared(scenario) as bench:
        written = _recorded(bench)
        assert set(await scenario.act(bench)) <= {ErrorCode.NONE}
        await _fail_over(bench)
        assert await scenario.is_done(bench), "not done though all was open"
    runs = [await _run_closed(scenario, path, access) for path in written for access in (Access.READ, Access.NONE)]
    return sum(runs)


def _recorded(bench: Bench) -> dict[str, None]:
    """Return the paths that the controller of a bench writes from now on; others write without its fence."""
    multi, written = bench.store.multi, dict[str, None]()

    async def record(ops: Sequence[Op], **options: Any) -> object:
        committed = await multi(ops, **options)
        fence, *others = ops
        if isinstance(fence, Check) and fence.path == paths.CONTROLLER_EPOCH:
            written.update(dict.fromkeys(path for op in others for path in _closable(op)))
        return committed

    bench.store.multi = record  # type: ignore[method-assign,assignment]
    return written


def _closable(op: Op) -> tuple[str, ...]:
    """Return the paths with ACLs that can forbid an operation, and that of its own znode."""
    return (parent_of(op.path), op.path) if isinstance(op, (Create, Delete)) else (op.path,)


async def _run_closed(scenario: Scenario, path: str, access: Access) -> bool:
    """Run a scenario with a path closed; return whether the path is there to be closed."""
    async with _prepared(scenario) as bench:
        tree = bench.seen.zookeeper.tree
        if tree.read(path) is None:
            return False
        tree.allow(path, access)
        errors = await _act(scenario, bench, access)
        await _check(scenario, bench)
        # The next controller may find the path closed as well, and perhaps it cannot even list what it needs.
        try:
            await _fail_over(bench)
            await _check(scenario, bench)
        except StoreError:
            assert access is Access.NONE, f"{path}: a rejected write ends the office"
        if tree.read(path) is not None:
            tree.allow(path, Access.ALL)
        await _fail_over(bench)
        await _check(scenario, bench)
        if errors <= {ErrorCode.NONE}:
            assert await scenario.is_done(bench), f"{path} with {access.name}: success, and it is not done"
    return True


async def _act(scenario: Scenario, bench: Bench, access: Access) -> set[ErrorCode]:
    try:
        return set(await scenario.act(bench))
    except ApiError as error:
        return {error.code}
    except StoreError:
        # What a controller cannot even list costs the office, and its requests are answered with an error.
        assert access is Access.NONE, "a rejected write ends the office"
        return {ErrorCode.NOT_CONTROLLER}


async def _check(scenario: Scenario, bench: Bench) -> None:
    if scenario.check is not None:
        await scenario.check(bench)


@asynccontextmanager
async def _prepared(scenario: Scenario) -> AsyncIterator[Bench]:
    async with new_bench(lambda: 0) as bench:
        await scenario.prepare(bench)
        bench.seen.clear()
        yield bench


async def _fail_over(bench: Bench) -> None:
    """Let another controller take office, and brokers obey it."""
    bench.seen.clear()
    await bench.fail_over()
    await obey(bench)


# --- for scenarios ----------------------------------------------------------------------------------------------


async def one_topic(bench: Bench) -> None:
    """Take office in a cluster with one partition on three brokers."""
    await bench.start((1, 2, 3))


async def obey(bench: Bench) -> None:
    """Let live brokers delete the replicas that they were ordered to delete, as long as there are orders."""
    seen = 0
    for _ in range(MOST_ORDERS):
        new, seen = bench.seen.published[seen:], len(bench.seen.published)
        stops = [stop for stop in new if isinstance(stop, Stop) and stop.partition.delete]
        orders = [(broker_id, stop.partition) for stop in stops for broker_id in stop.brokers]
        for broker_id, partition in orders:
            if broker_id in bench.context.brokers:
                await bench.handle(ReplicasDeleted(broker_id, (partition,)))


def deleted_on(bench: Bench) -> set[int]:
    """Return the brokers that were ordered to delete a replica."""
    return {id_ for p in bench.seen.published if isinstance(p, Stop) and p.partition.delete for id_ in p.brokers}


def is_led(bench: Bench, tp: TopicPartition) -> bool:
    """Return whether a live broker leads a partition."""
    state = bench.context.leadership.get(tp)
    return state is not None and bench.context.is_online(tp, state.leader)
