"""The progress of moves on stderr: a bar on a terminal, otherwise a line for each piece of news."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

import click
import trio
from attrs import define
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from controller.admin.move_admin import MoveAdmin
from controller.admin.moves import MoveStatus, MoveWatch, Targets, waits_for
from klamm.cli import progress
from klamm.cli.progress import is_animated, is_lines_only
from klamm.cli.units import duration, rate, size
from transport.host import Host
from transport.messages import UNKNOWN, ReassignmentDescription

NAMED = 5
"""The number of stalled moves that are named; the others are counted."""

FEW = 10
"""Up to this number of moves, a line says what the first one waits for, whenever that changes."""

BETWEEN_LINES = 10.0
"""Seconds between two lines that report only progress."""

_SHORTEST_BAR = 8
_AMOUNT = re.compile(r"[\d.,]+ ([kMGT]?B|records|s)\b")


async def wait_for(admin: MoveAdmin, targets: Targets) -> None:
    """Show how far the moves to `targets` are until all of them are over."""
    await show_until_over(MoveWatch(admin, targets))


async def show_until_over(watch: MoveWatch, look_beside: Callable[[], Awaitable[Sequence[str]]] | None = None) -> None:
    """Show how far moves are until all of them are over, and what `look_beside` returns after each look at them."""
    console, host = Console(stderr=True), Host()
    if not is_animated(console):
        news = News(is_watched=is_lines_only(console))
        async for status in watch.follow():
            beside = () if look_beside is None else await look_beside()
            for line in (*news.lines(status, trio.current_time(), host.now_ms()), *beside):
                click.echo(line, err=True)
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        async for status in watch.follow():
            beside = () if look_beside is None else await look_beside()
            for line in (*status.setbacks, *beside):
                live.console.print(line, highlight=False)
            live.update(panel(status, host.now_ms()), refresh=True)


def panel(status: MoveStatus, now_ms: int) -> RenderableType:
    """Return the bar, and below it the stalled moves, or what the first move waits for."""
    bar = ProgressBar(max(status.to_copy, 1), status.copied) if status.to_copy else _bar_of_partitions(status)
    grid = Table.grid(padding=(0, 1), expand=True)
    for ratio in (None, 1, None):
        grid.add_column(ratio=ratio, min_width=_SHORTEST_BAR if ratio else None, no_wrap=ratio is None)
    grid.add_row(f"moved {len(status.ended):,}/{len(status.targets):,}", bar, figures(status))
    below = [*_trouble(status), *(stalled_lines(status, now_ms) or waiting_lines(status))]
    return Group(grid, *map(Text, below))


def _trouble(status: MoveStatus) -> list[str]:
    return [f"cannot see the progress, trying again: {status.trouble}"] if status.trouble else []


def _bar_of_partitions(status: MoveStatus) -> ProgressBar:
    return ProgressBar(len(status.targets), len(status.ended))


def figures(status: MoveStatus) -> str:
    """Return bytes, rate and the time left, as far as they are known."""
    parts = []
    if status.to_copy:
        parts.append(f"{size(status.copied)} of {size(status.to_copy)}")
    if status.rate > 0:
        parts.append(rate(status.rate))
    if status.eta_ms != UNKNOWN:
        parts.append(f"{duration(status.eta_ms)} left")
    return ", ".join(parts)


def stalled_lines(status: MoveStatus, now_ms: int) -> list[str]:
    """Return a line for each move that is stalled, up to NAMED of them."""
    lines = [_stalled_line(move, now_ms) for move in status.stalled[:NAMED]]
    more = len(status.stalled) - NAMED
    return [*lines, f"and {more:,} more are stalled: see `klamm reassignment describe`"] if more > 0 else lines


def _stalled_line(move: ReassignmentDescription, now_ms: int) -> str:
    stalled = duration(max(now_ms - move.stalled_since_ms, 0))
    return f"{move.tp} stalled for {stalled}: waits for {waits_for(move)}"


def waiting_lines(status: MoveStatus) -> list[str]:
    """Return what the first move waits for."""
    return [f"{move.tp} waits for {waits_for(move)}" for move in status.ongoing[:1]]


@define
class News:
    """The news in a status, compared with the lines printed before.

    A change of a number in what a move waits for does not count as news.
    """

    is_watched: bool = False
    """True if a person watches the output, and wants progress more often than a file needs it."""

    _stalled: frozenset[str] = frozenset()
    _waiting: str = ""
    _trouble: str = ""
    _tenths: tuple[int, int] = (0, 0)
    _figures: str = ""
    _last: float = 0.0

    def lines(self, status: MoveStatus, now: float, now_ms: int) -> list[str]:
        """Return the lines to print; `now` is in seconds, on any clock."""
        if status.trouble:
            told, self._trouble = self._trouble, _gist(status.trouble)
            return _trouble(status) if self._trouble != told else []
        self._trouble = ""
        lines = [*status.setbacks, *self._newly_stalled(status, now_ms)]
        if len(status.targets) <= FEW and not status.stalled:
            lines += self._newly_waiting(status)
        return [*lines, *self._how_far(status, now)]

    def _newly_stalled(self, status: MoveStatus, now_ms: int) -> list[str]:
        stalled = {_gist(f"{move.tp} {waits_for(move)}"): move for move in status.stalled}
        new = [move for gist, move in stalled.items() if gist not in self._stalled]
        self._stalled = frozenset(stalled)
        lines = [_stalled_line(move, now_ms) for move in new[:NAMED]]
        return [*lines, f"and {len(new) - NAMED:,} more are stalled"] if len(new) > NAMED else lines

    def _newly_waiting(self, status: MoveStatus) -> list[str]:
        lines = waiting_lines(status)
        told, self._waiting = self._waiting, _gist("".join(lines))
        return lines if self._waiting != told else []

    def _how_far(self, status: MoveStatus, now: float) -> list[str]:
        """Return a line if another tenth of the partitions or bytes is done, at most every BETWEEN_LINES seconds.

        A person who watches gets a line every few seconds if the figures have changed.
        """
        if not self._last:
            self._last = now
        partitions, all_partitions = len(status.ended), len(status.targets)
        tenths = partitions * 10 // all_partitions, status.copied * 10 // max(status.to_copy, 1)
        known = figures(status)
        text = f"{partitions:,} of {all_partitions:,} partitions moved" + (f", {known}" if known else "")
        is_news = text != self._figures if self.is_watched else tenths != self._tenths
        between = progress.BETWEEN_LINES if self.is_watched else BETWEEN_LINES
        if not is_news or partitions == all_partitions or now - self._last < between:
            return []
        self._tenths, self._figures, self._last = tenths, text, now
        return [text]


def _gist(text: str) -> str:
    """Return what a move waits for without amounts."""
    return _AMOUNT.sub("", text)
