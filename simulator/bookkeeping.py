"""Trio's bookkeeping of tasks that can run and of deadlines, which does the same as trio's own for less.

Trio makes a new outcome for each wait that ends, which can be used once, and two generators for each cancel scope.
"""

from __future__ import annotations

from math import inf
from typing import Final, cast

from attrs import define
from outcome import Outcome
from trio import CancelScope
from trio._core import _run as _trio
from trio._core._run import Runner, Task


class _Nothing:
    """The outcome of a wait that returns nothing; one of trio's own could be used only once."""

    def unwrap(self) -> None:
        """Return nothing."""


NOTHING: Final = cast("Outcome[object]", _Nothing())

_trios_reschedule: Final = Runner.reschedule


def reschedule(runner: Runner, task: Task, next_send: Outcome[object] = _trio._NO_SEND) -> None:
    """Let a task that waits run again: takes the place of the method of `Runner`."""
    if runner.is_guest or runner.instruments:
        # It is not the runner of a simulation, but one of another thread.
        _trios_reschedule(runner, task, next_send)
        return
    assert task._next_send_fn is None
    task._next_send_fn = task.coro.send
    task._next_send = NOTHING if next_send is _trio._NO_SEND else next_send
    task._abort_func = None
    task.custom_sleep_data = None
    runner.runq.append(task)


def changing_deadline(scope: CancelScope) -> DeadlineChange:
    """Return a block that changes the deadline of a scope: takes the place of the method of `CancelScope`."""
    return DeadlineChange(scope)


@define(eq=False)
class DeadlineChange:
    """A block that changes the deadline of a cancel scope, which is registered anew when the block ends."""

    _scope: CancelScope

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        scope = self._scope
        before = scope._registered_deadline
        has_none = scope._cancel_status is None or scope._cancel_called
        after = inf if has_none else scope._deadline
        if before == after:
            return
        scope._registered_deadline = after
        runner = _trio.GLOBAL_RUN_CONTEXT.runner
        if before != inf:
            runner.deadlines.remove(before, scope)
        if after != inf:
            runner.deadlines.add(after, scope)
        if runner.is_guest:
            runner.force_guest_tick_asap()
