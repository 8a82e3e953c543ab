"""The simulator's run loop does what trio's own does, in the same order."""

from __future__ import annotations

import signal
import types
from collections.abc import Generator

import pytest
import trio
from trio._core._run import Runner

from simulator import run_loop
from simulator.random_run.plan import draw
from simulator.random_run.run import run as run_plan
from simulator.scheduling import run

Lines = list[str]
OTHER_TRIO = "0.99.0"


async def _race(lines: Lines) -> None:
    """Let tasks meet in every way in which trio decides who comes next."""
    gun, lock = trio.Event(), trio.Lock()

    async def racer(number: int) -> None:
        await gun.wait()
        async with lock:
            lines.append(f"{number} has the lock at {trio.current_time()}")
        for _ in range(number % 4):
            await trio.lowlevel.checkpoint()
            lines.append(f"{number} passes a checkpoint")
        with trio.move_on_after(number % 3):
            lines.append(f"{number} waits")
            await trio.sleep(1.5)
            lines.append(f"{number} has slept")
        with trio.CancelScope() as scope:
            scope.deadline = trio.current_time()
            await trio.lowlevel.checkpoint()
            lines.append(f"{number} is too slow")
        if number == 7:
            raise ValueError(number)

    async def starter() -> None:
        await trio.sleep(1)
        gun.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(starter)
        for number in range(12):
            nursery.start_soon(racer, number)


def _order(seed: int) -> Lines:
    lines: Lines = []
    with pytest.raises(ExceptionGroup):
        run(lambda: _race(lines), seed=seed)
    return lines


def test_tasks_take_their_steps_as_in_trios_own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = [_order(seed) for seed in range(10)]
    assert len({tuple(lines) for lines in orders}) == 10
    monkeypatch.setattr(trio, "__version__", OTHER_TRIO)
    assert [_order(seed) for seed in range(10)] == orders


def test_a_random_run_has_the_same_trace_as_in_trios_own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = run_plan(draw(1))
    monkeypatch.setattr(trio, "__version__", OTHER_TRIO)
    assert run_plan(draw(1)) == ours


def test_an_unknown_version_of_trio_runs_its_own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = []
    take_turn = run_loop._take_turn  # noqa: SLF001  whether it is called is the question

    def counted(runner: Runner) -> None:
        turns.append(runner)
        take_turn(runner)

    monkeypatch.setattr(run_loop, "_take_turn", counted)
    run(trio.lowlevel.checkpoint, seed=0)
    assert turns
    turns.clear()
    monkeypatch.setattr(trio, "__version__", OTHER_TRIO)
    run(trio.lowlevel.checkpoint, seed=0)
    assert not turns


@pytest.mark.parametrize("pause", [0, 1])
def test_ctrl_c_ends_a_run(pause: float) -> None:
    passed = []

    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        for number in range(10_000):
            await trio.sleep(pause)
            passed.append(number)

    with pytest.raises(KeyboardInterrupt):
        run(main, seed=0)
    assert len(passed) < 5_000


def test_ctrl_c_wakes_a_run_in_which_nothing_can_happen_any_more() -> None:
    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        run(main, seed=0)


def test_an_exception_ends_a_run_with_its_own_traceback() -> None:
    async def main() -> None:
        await trio.sleep(1)
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault") as raised:
        run(main, seed=0)
    assert [entry.name for entry in raised.traceback][-1] == "main"
    assert "_step" not in [entry.name for entry in raised.traceback]


def test_a_task_cannot_wait_for_another_library() -> None:
    @types.coroutine
    def wait_as_asyncio_does() -> Generator[object, None, None]:
        yield "a future"

    async def main() -> None:
        with pytest.raises(TypeError, match="a future"):
            await wait_as_asyncio_does()
        await trio.sleep(1)

    run(main, seed=0)
