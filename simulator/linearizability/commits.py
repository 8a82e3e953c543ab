"""States that change only by commits: each commit that is recorded stands for one request, or for one step without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace


class Committed(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A state of which the commits are known, or not."""

    changes: int | None = None
    """The changes that the commit in progress has left; 0 between commits, None while no commit has been seen."""


C = TypeVar("C", bound=Committed)


def by_commit(state: C, possible: Iterable[C]) -> Iterator[C]:
    """Yield the possible next states that need no commit, or that the commit in progress may bring about."""
    for after in possible:
        if state.changes is None:
            yield after
        elif replace(after, changes=state.changes) == state:
            yield state
        elif state.changes > 0:
            yield replace(after, changes=state.changes - 1)
