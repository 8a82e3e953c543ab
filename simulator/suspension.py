"""Tasks that do not run, as if their event loop stood still: part of trio's queue of tasks is held back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trio._core import _run as _scheduler
from trio.lowlevel import Task

_RESCHEDULE: Final = "reschedule"

_usual: Final[list[Callable[..., None]]] = []
"""The method that this module's takes the place of, while a task is suspended."""

held: Final[dict[Task, list[Task]]] = {}
"""The tasks to run when a suspended task resumes, by that task. The usual method is in place while it is empty."""


def suspend(root: Task) -> None:
    """Let neither a task nor any task below it run until `resume`, as if their event loop stood still.

    What wakes them meanwhile, such as a deadline, takes effect then.
    """
    if not held:
        _usual.append(_scheduler.Runner.reschedule)
        setattr(_scheduler.Runner, _RESCHEDULE, _reschedule_or_hold)
    held.setdefault(root, [])


def resume(root: Task) -> None:
    """Let a task and those below it run again, in the order in which they were woken."""
    tasks = held.pop(root, [])
    if not held and _usual:
        setattr(_scheduler.Runner, _RESCHEDULE, _usual.pop())
    if tasks:
        _scheduler.GLOBAL_RUN_CONTEXT.runner.runq.extend(tasks)


def _reschedule_or_hold(runner: _scheduler.Runner, task: Task, *next_send: Any) -> None:
    _usual[-1](runner, task, *next_send)
    root = _suspended_root(task)
    if root is not None:
        runner.runq.pop()
        held[root].append(task)


def _suspended_root(task: Task | None) -> Task | None:
    """Return the suspended task that is above a task, or the task itself; None if there is none."""
    while task is not None and task not in held:
        nursery = task.parent_nursery
        task = None if nursery is None else nursery.parent_task
    return task
