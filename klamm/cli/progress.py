"""Progress on stderr: a moving bar if the terminal can show one, otherwise lines."""

from __future__ import annotations

import click
import trio
from attrs import define
from rich.console import Console

BETWEEN_LINES = 5.0
"""Seconds between two lines on a terminal that can only print lines."""


def is_animated(console: Console) -> bool:
    """Return whether the console can show a moving bar."""
    return console.is_terminal and not console.is_dumb_terminal


def is_lines_only(console: Console) -> bool:
    """Return whether a person watches a terminal that cannot show a bar (TERM=dumb)."""
    return console.is_terminal and console.is_dumb_terminal


@define
class Lines:
    """Print the first text, and then at most one new text every few seconds."""

    _told: str = ""
    _next: float = 0.0

    def tell(self, text: str) -> None:
        """Print a text if it is new and enough time has passed. Needs a trio task."""
        now = trio.current_time()
        if text != self._told and (not self._told or now >= self._next):
            self._told, self._next = text, now + BETWEEN_LINES
            click.echo(text, err=True)
