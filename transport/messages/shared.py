"""Rows of requests that several brokers are sent, which are packed once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Generic, Self, TypeVar, cast

from attrs import define, field

R = TypeVar("R")
P = TypeVar("P")


class SharedRows(tuple[R, ...]):  # noqa: SLOT001  it has a dictionary for what it remembers
    """A tuple of rows that remembers what they were packed into, for as long as one of the requests exists.

    A `form` stands for a wire, a version, and whatever else the bytes depend on.
    """

    are_sorted: bool = False
    """Whether the rows are known to be in the order of their keys, which are all different."""

    _common: CommonRows[R] | None = None
    _places: Sequence[int] = ()
    _parts: Sequence[tuple[R, ...]] = ()

    @classmethod
    def of(cls, rows: Iterable[R], *, are_sorted: bool) -> Self:
        """Make a tuple of rows that may be known to be in order."""
        made = cls(rows)
        made.are_sorted = are_sorted
        return made

    @classmethod
    def joined(cls, parts: Sequence[tuple[R, ...]]) -> tuple[R, ...]:
        """Return the rows of several tuples as one, which remembers what theirs were packed into."""
        if len(parts) == 1:
            return parts[0]
        rows = cls(chain.from_iterable(parts))
        rows._parts = parts
        return rows

    def be_of(self, rows: CommonRows[R], places: Sequence[int]) -> None:
        """Become a selection of common rows."""
        self._common, self._places = rows, places

    @property
    def has_pieces(self) -> bool:
        """Whether rows of it are packed for others as well, but not all of them together."""
        return self._common is not None or bool(self._parts)

    def whole(self, form: Hashable, pack: Callable[[SharedRows[R]], P]) -> P:
        """Return what `pack` makes of all rows."""
        known = self._wholes.get(form)
        if known is None:
            known = self._wholes[form] = pack(self)
        return cast("P", known)

    def pieces(self, form: Hashable, pack: Callable[[R], bytes]) -> list[bytes]:
        """Return what `pack` makes of each row."""
        if self._common is not None:
            return self._common.pieces(self._places, form, pack)
        if not self._parts:
            return self.whole((form, "pieces"), lambda rows: list(map(pack, rows)))
        parts = [part.pieces(form, pack) if isinstance(part, SharedRows) else map(pack, part) for part in self._parts]
        return list(chain.from_iterable(parts))

    @cached_property
    def _wholes(self) -> dict[Hashable, object]:
        return {}


@define(eq=False)
class CommonRows(Generic[R]):
    """Rows of which each of several brokers is sent its own selection. Each row is packed once."""

    rows: list[R] = field(factory=list)
    are_sorted: bool = field(default=False, init=False)
    """See `SharedRows`."""

    _packed: dict[Hashable, list[bytes]] = field(factory=dict, init=False)
    """The bytes of each row, b"" while it has not been packed."""

    def select(self, places: Sequence[int]) -> SharedRows[R]:
        """Return some of the rows, by their places in the list, to which no more may be added."""
        selected = SharedRows.of(map(self.rows.__getitem__, places), are_sorted=self.are_sorted)
        selected.be_of(self, places)
        return selected

    def pieces(self, places: Sequence[int], form: Hashable, pack: Callable[[R], bytes]) -> list[bytes]:
        """Return what `pack` makes of some of the rows."""
        packed = self._packed.get(form)
        if packed is None:
            packed = self._packed[form] = [b""] * len(self.rows)
        missing = [place for place in places if not packed[place]]
        for place, piece in zip(missing, map(pack, map(self.rows.__getitem__, missing)), strict=True):
            packed[place] = piece
        return list(map(packed.__getitem__, places))
