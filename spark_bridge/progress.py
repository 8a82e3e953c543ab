"""How far a plan is, as the one who waits for it reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from attrs import frozen


@frozen
class Progress:
    """Where planning stands.

    Attributes:
        phase: What is being done, in a word or two: "reading", "moving replicas", "leaders", "checking", "summing
            up", "writing".
        round: The round that just began, from 1; None in a phase without rounds.
        rounds: How many rounds there are at most; None when that is not known.
        left: What is left to do, in words; None when there is nothing to tell.
        ui: The address of Spark's UI, told once it serves; None where it is off.
    """

    phase: str
    round: int | None = None
    rounds: int | None = None
    left: str | None = None
    ui: str | None = None


OnProgress: TypeAlias = Callable[[Progress], None]
"""Who planning tells how far it is. It may raise, which ends the plan: planning lets through what it raises."""


def in_words(progress: Progress) -> str:
    """Return how far planning is, as a line says it."""
    of = "" if progress.rounds is None else f" of at most {progress.rounds}"
    rounds = "" if progress.round is None else f", round {progress.round}{of}"
    left = "" if progress.left is None else f": {progress.left}"
    return f"{progress.phase}{rounds}{left}"
