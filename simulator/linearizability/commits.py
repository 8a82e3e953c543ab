"""States that change only by commits: each commit that is recorded stands for one request, or for one step without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from attrs import evolve, field, frozen


@frozen(cache_hash=True)
class Committed:
    """A state of which the commits are known, or not."""

    changes: int | None = field(default=None, kw_only=True)
    """The changes that the commit in progress has left; 0 between commits, None while no commit has been seen."""


C = TypeVar("C", bound=Committed)


def by_commit(state: C, possible: Iterable[C]) -> Iterator[C]:
    """Yield the possible next states that need no commit, or that the commit in progress may bring about."""
    for after in possible:
        if state.changes is None:
            yield after
        elif evolve(after, changes=state.changes) == state:
            yield state
        elif state.changes > 0:
            yield evolve(after, changes=state.changes - 1)
