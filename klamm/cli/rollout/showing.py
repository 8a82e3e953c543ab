"""The progress of a rollout: a bar on a terminal, lines elsewhere, and what the journal keeps of it for `status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click
import trio
from attrs import define, field, frozen
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from controller.rollout.forecast import TimeLeft
from controller.rollout.states import FORTH
from controller.rollout.waiting import Reason
from klamm.cli.progress import is_animated
from klamm.cli.rollout.history import History
from klamm.cli.rollout.work import Work
from klamm.cli.units import duration, rate, size

SECONDS: Final = 10.0
"""The time between two lines, and between two notes in the journal."""

_BAR: Final = 20


@frozen
class Progress:
    """The state of a rollout. `waits` counts the moves that wait, by what for; `error` is a part of the time left."""

    state: str
    done: int
    total: int
    in_flight: int
    left: int
    rate: float | None = None
    seconds: float | None = None
    error: float | None = None
    waits: Mapping[str, int] = field(factory=dict)
    brake: str = ""
    stuck: int = 0
    """The moves in flight that wait for dead brokers."""

    @property
    def line(self) -> str:
        """The progress in a line."""
        parts = [f"{self.done:,} of {self.total:,} done, {self.in_flight:,} in flight", f"{size(self.left)} left"]
        if self.rate is not None:
            parts.append(rate(round(self.rate)))
        if self.seconds is not None:
            within = "" if self.error is None else f" (so far within {self.error:.0%})"
            parts.append(f"{duration(round(self.seconds * 1000))} left{within}")
        text = ", ".join(parts)
        return f"paused, {self.brake}: {text}" if self.brake else text

    @property
    def waiting(self) -> Iterator[str]:
        """A line for each thing that many moves wait for, the most common ones first."""
        for text, count in Counter(self.waits).most_common(3):
            yield f"{count:,} wait{'s' if count == 1 else ''}: {text}"

    @property
    def standstill(self) -> Iterator[str]:
        """The same if nothing in flight can end, although nothing holds the rollout up."""
        return self.waiting if self.in_flight <= self.stuck and not self.brake else iter(())

    @property
    def entry(self) -> dict[str, Any]:
        """The progress as the journal has it."""
        return {
            "done": self.done,
            "in_flight": self.in_flight,
            "bytes_left": self.left,
            "bytes_per_second": None if self.rate is None else round(self.rate),
            "seconds_left": None if self.seconds is None else round(self.seconds),
            "error": None if self.error is None else round(self.error, 3),
            "waits": dict(self.waits),
            "brake": self.brake,
        }


def progress_of(history: History, total: int, work: Work, time_left: TimeLeft, brake: str) -> Progress:
    """Return the progress of a rollout; `total` are the moves of its plan, `brake` says what holds it up."""
    return Progress(
        str(history.state),
        history.counts(total)[work.direction.ended],
        total if work.direction is FORTH else len(work.moves),
        len(work.in_flight),
        work.left,
        time_left.rate,
        time_left.seconds,
        time_left.error,
        Counter(map(str, work.waits.values())),
        brake,
        sum(wait.reason is Reason.DEAD_IN_FLIGHT for wait in work.waits.values()),
    )


@define
class Display:
    """Shows progress, and says what happens."""

    _console: Console = field(factory=lambda: Console(stderr=True))
    _live: Live | None = None
    _next: float = float("-inf")
    _last: str = ""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Show a bar while the block runs, if the terminal can."""
        if not is_animated(self._console):
            yield
            return
        with Live(console=self._console, transient=True, auto_refresh=False) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def say(self, text: str) -> None:
        """Print a line."""
        if self._live is None:
            click.echo(text, err=True)
        else:
            self._live.console.print(text, highlight=False, markup=False)

    def show(self, progress: Progress) -> bool:
        """Show how far the rollout is; return whether it is time for a note of it."""
        if self._live is not None:
            self._live.update(_panel(progress), refresh=True)
        now = trio.current_time()
        if now < self._next:
            return False
        self._next = now + SECONDS
        text = "\n".join([progress.line, *progress.standstill])
        if self._live is None and text != self._last:
            self._last = text
            click.echo(text, err=True)
        return True


def _panel(progress: Progress) -> Group:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(min_width=_BAR, ratio=1)
    grid.add_row(f"{progress.done:,}/{progress.total:,}", ProgressBar(max(progress.total, 1), progress.done))
    return Group(grid, *map(Text, (progress.line, *progress.waiting)))
