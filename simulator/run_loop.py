"""Trio's run loop without what a simulation does not need, which is half of its cost.

Trio looks for I/O before every turn, and tells instruments of it. Most turns of a simulation run one task, up to a
checkpoint at which nothing else can run: here that task continues at once, and I/O is looked for now and then, for
Ctrl-C. Tasks take their steps in the same order as in trio's own loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final

from outcome import Error, Outcome, Value
from trio._core import _run as _trio
from trio._core._run import Runner, Task
from trio._core._traps import CancelShieldedCheckpoint, WaitTaskRescheduled

from simulator.bookkeeping import NOTHING
from simulator.suspension import held

LOOK_EVERY: Final = 1000
"""Number of times that all tasks wait for each look for I/O."""

_DAY: Final = 24 * 60 * 60
"""Maximum seconds that a look for I/O may take."""


def unrolled_run(
    runner: Runner, async_fn: Callable[..., Awaitable[object]], args: tuple[Any, ...]
) -> Generator[float, Any, None]:
    """Run all tasks to their ends on a clock that never has to wait: takes the place of trio's function of this name.

    Yields how many seconds to look for I/O, and is sent what was found.
    """
    runner.instruments = {}  # type: ignore[assignment]  # there are none, and a plain dict says so at once
    looks = 0
    try:
        runner.entry_queue.wakeup.wakeup_on_signals()
        runner.init_task = runner.spawn_impl(runner.init, (async_fn, args), None, "<init>", system_task=True)
        while runner.tasks:
            if not runner.runq:
                looks += 1
                is_stuck = runner.clock.deadline_to_sleep_time(runner.deadlines.next_deadline()) > 0
                if is_stuck or looks % LOOK_EVERY == 0:
                    yield from _look_for_io(runner, is_stuck=is_stuck)
            if _has_expired(runner):
                runner.deadlines.expire(runner.clock.current_time())
            _take_turn(runner)
    finally:
        _end(runner)


def _look_for_io(runner: Runner, *, is_stuck: bool) -> Generator[float, Any, None]:
    """Process what I/O brings; if it brings nothing, wake the tasks that wait until all others are blocked."""
    waiting = runner.waiting_for_idle
    cushion = waiting.keys()[0][0] if waiting else _DAY
    events = yield cushion if is_stuck else 0.0
    runner.io_manager.process_events(events)
    if is_stuck and not events:
        while waiting and waiting.keys()[0][0] == cushion:
            runner.reschedule(waiting.popitem(0)[1])


def _take_turn(runner: Runner) -> None:
    """Let each task that can run take a step, in an order drawn from trio's generator."""
    runnable = runner.runq
    if not runnable:
        return
    batch = list(runnable)
    runnable.clear()
    if len(batch) > 1:
        batch.sort(key=_age)
        _trio._r.shuffle(batch)
    while batch:
        _step(runner, batch.pop(), batch)
    del _trio.GLOBAL_RUN_CONTEXT.task


def _age(task: Task) -> int:
    return task._counter


def _step(runner: Runner, task: Task, others: list[Task]) -> None:
    """Run a task until it waits or ends, or gets to a checkpoint at which another task can run."""
    _trio.GLOBAL_RUN_CONTEXT.task = task
    run: Callable[..., object] = task.context.run
    send, value = task._next_send_fn, task._next_send
    task._next_send_fn = task._next_send = None
    try:
        message = run(send, value)
        while message is CancelShieldedCheckpoint and not (others or runner.runq or held or _has_expired(runner)):
            message = run(task.coro.send, NOTHING)
    except StopIteration as end:
        outcome: Outcome[object] = Value(end.value)
    except BaseException as error:  # noqa: BLE001  the parent of the task handles it
        outcome = Error(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
    else:
        _suspend(runner, task, message)
        return
    runner.task_exited(task, outcome)


def _has_expired(runner: Runner) -> bool:
    """Return whether a deadline is over."""
    heap = runner.deadlines._heap
    return bool(heap) and heap[0][0] <= runner.clock.current_time()


def _suspend(runner: Runner, task: Task, message: object) -> None:
    """Handle what a task yields to the run loop."""
    task._schedule_points += 1
    if isinstance(message, WaitTaskRescheduled):
        task._cancel_points += 1
        task._abort_func = message.abort_func
        if runner.ki_pending and task is runner.main_task:
            task._attempt_delivery_of_pending_ki()
        task._attempt_delivery_of_any_pending_cancel()
    elif message is CancelShieldedCheckpoint:
        runner.reschedule(task)
    else:
        # The library that yielded this may not unwrap outcomes, as trio does; so the error is thrown.
        runner.reschedule(task, TypeError(f"trio does not know {message!r}: is it of another library?"))  # type: ignore[arg-type]
        task._next_send_fn = task.coro.throw


def _end(runner: Runner) -> None:
    """Close the runner. A Ctrl-C that no task has received by now is the outcome of the run."""
    runner.close()
    _trio.GLOBAL_RUN_CONTEXT.__dict__.clear()
    if runner.ki_pending:
        runner.main_task_outcome = Error(KeyboardInterrupt())
