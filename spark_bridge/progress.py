"""The progress of a plan, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from attrs import frozen


@frozen
class Progress:
    """The progress of a plan.

    Attributes:
        phase: The current phase, in a word or two: "reading", "moving replicas", "leaders", "checking", "summing
            up", "writing".
        round: The round that just began, from 1; None in a phase without rounds.
        rounds: The most rounds of the phase; None if unknown.
        left: What remains to do, in words; None if there is nothing to report.
        ui: The address of Spark's UI once it serves; None if it is off.
    """

    phase: str
    round: int | None = None
    rounds: int | None = None
    left: str | None = None
    ui: str | None = None


OnProgress: TypeAlias = Callable[[Progress], None]
"""A callback for progress. An exception that it raises ends the plan and is passed on."""


def in_words(progress: Progress) -> str:
    """Return the progress as one line of text."""
    of = "" if progress.rounds is None else f" of at most {progress.rounds}"
    rounds = "" if progress.round is None else f", round {progress.round}{of}"
    left = "" if progress.left is None else f": {progress.left}"
    return f"{progress.phase}{rounds}{left}"
