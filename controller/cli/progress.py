"""Showing on stderr how far something is: moving where a terminal can, else in lines."""

from __future__ import annotations

import click
import trio
from attrs import define
from rich.console import Console

BETWEEN_LINES = 5.0
"""Seconds between two lines on a terminal that can only print lines."""


def is_animated(console: Console) -> bool:
    """Return whether a bar can move there."""
    return console.is_terminal and not console.is_dumb_terminal


def is_lines_only(console: Console) -> bool:
    """Return whether a person looks on who sees no bar: at a terminal with TERM=dumb."""
    return console.is_terminal and console.is_dumb_terminal


@define
class Lines:
    """Prints the first of some texts, and after that one that is new every few seconds."""

    _told: str = ""
    _next: float = 0.0

    def tell(self, text: str) -> None:
        """Print a text if it is time to. Called within trio."""
        now = trio.current_time()
        if text != self._told and (not self._told or now >= self._next):
            self._told, self._next = text, now + BETWEEN_LINES
            click.echo(text, err=True)
