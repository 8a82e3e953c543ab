"""Rollouts, while a path is closed that the controller writes: orders fail, or they are carried out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from controller.events import RolloutLook, RolloutsDue
from tests.controller.closed.sweeps import Errors, Scenario
from tests.controller.conftest import Bench
from tests.controller.rollouts.operator import ORIGIN, TARGET, Operator
from transport.errors import ErrorCode
from transport.messages import RolloutMove, RolloutOrder, RolloutSettings, StartRolloutRequest, StartRolloutResponse
from transport.metadata import TopicPartition
from transport.store import paths

NAME: Final = "monday"
RATE: Final = 2_000
MOVES: Final = 4
FIRST, LATER = TopicPartition("orders", 0), TopicPartition("orders", 3)

Prepared = Callable[[Bench], Awaitable[None]]


async def _several(bench: Bench) -> None:
    await bench.start(*[ORIGIN] * 6)


async def _in_flight(bench: Bench) -> None:
    await _several(bench)
    await Operator(bench).start(MOVES, in_all=1, throttle=1_000)


async def _over(bench: Bench) -> None:
    await _several(bench)
    await Operator(bench).start(2)
    await Operator(bench).finish()


async def _paused(bench: Bench) -> None:
    await _in_flight(bench)
    await Operator(bench).order(RolloutOrder.PAUSE)


# --- orders -----------------------------------------------------------------------------------------------------


def _order(order: RolloutOrder, **changes: int) -> Callable[[Bench], Awaitable[Errors]]:
    async def give(bench: Bench) -> Errors:
        await Operator(bench).order(order, name=NAME, **changes)
        return ()

    return give


async def _start(bench: Bench) -> Errors:
    await Operator(bench).upload(*(RolloutMove("orders", n, TARGET, size=100) for n in range(4)))
    request = StartRolloutRequest(NAME, "digest", 4, RolloutSettings(in_all=1))
    return [(await bench.ask(request, StartRolloutResponse)).error]


async def _move_by_hand(bench: Bench) -> Errors:
    """Move partitions of the rollout elsewhere, of which one is in flight."""
    return [(await bench.move(tp, (5, 6))).error for tp in (FIRST, LATER)]


# --- what must be so then ---------------------------------------------------------------------------------------


def _is(*phases: str, holds: Iterable[str] = ()) -> Callable[[Bench], Awaitable[bool]]:
    async def is_so(bench: Bench) -> bool:
        rollout = bench.context.rollouts.by_name.get(NAME)
        return rollout is not None and rollout.stored.phase in phases and set(rollout.stored.holds) == set(holds)

    return is_so


async def _has_rate(bench: Bench) -> bool:
    return bench.context.rollouts.by_name[NAME].stored.settings.throttle == RATE


async def _is_gone(bench: Bench) -> bool:
    znode = await bench.read(paths.rollout(NAME))
    return NAME not in bench.context.rollouts.by_name and (znode is None or not znode.data)


async def _goes_on_to_its_end(bench: Bench) -> bool:
    operator = Operator(bench)
    for _ in range(10):
        await bench.handle(RolloutLook())
        await bench.handle(RolloutsDue())
        await operator.finish()
    return bench.context.rollouts.by_name[NAME].stored.phase == "done"


async def _are_left_alone(bench: Bench) -> bool:
    """Return whether no partition that was moved by hand is moved by the rollout afterwards."""
    await _goes_on_to_its_end(bench)
    return all(bench.context.assignment(tp).target_replicas == (5, 6) for tp in (FIRST, LATER))


async def _catch_up(bench: Bench) -> Errors:
    """Let the replicas of moves join their ISRs, one move after the other, until a leader is refused.

    A move whose last step is rejected stays in flight.
    """
    for _ in range(MOVES):
        tp = next(iter(bench.context.reassigning), None)
        if tp is None:
            return ()
        try:
            await bench.alter_isr(tp, *bench.context.assignment(tp).replicas)
        except AssertionError:
            return [ErrorCode.OPERATION_NOT_ATTEMPTED]
    return ()


SCENARIOS: Final = {
    "a rollout starts": Scenario(_several, _start, _is("running", "done")),
    "a rollout is paused": Scenario(_in_flight, _order(RolloutOrder.PAUSE), _is("running", holds=["operator"])),
    "a rollout is resumed": Scenario(_paused, _order(RolloutOrder.RESUME), _is("running", "done")),
    "a rollout is aborted": Scenario(_in_flight, _order(RolloutOrder.ABORT), _is("aborting", "aborted")),
    "a rollout is undone": Scenario(_over, _order(RolloutOrder.UNDO), _is("aborting to undo", "undoing", "undone")),
    "a rollout gets a throttle": Scenario(_in_flight, _order(RolloutOrder.SET, throttle=RATE), _has_rate),
    "a rollout is removed": Scenario(_over, _order(RolloutOrder.REMOVE), _is_gone),
    "a rollout goes on": Scenario(_in_flight, _catch_up, _goes_on_to_its_end),
    "partitions of a rollout are moved by hand": Scenario(_in_flight, _move_by_hand, _are_left_alone),
}
