"""Partitions that wait to be sent to a broker: single ones, and blocks that go to other brokers as well.

A block is cut once for all its brokers, and is sent as it is, so that it is packed once. A broker for which something
newer about one of its partitions arrives meanwhile gets a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set as AbstractSet
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from attrs import define, field

from controller.channels.blocks import MAX_PARTITIONS, Block, Key
from transport.messages.shared import SharedRows

V = TypeVar("V")


_FEW: Final = 20
"""The number of blocks in a full request from which on they are small: with more, finding a partition takes longer."""


@define
class Waiting(Generic[V]):
    """The entries that wait for one broker, at most one for each key, in the order in which the first of each came.

    A block stays whole if it is not small, or if nothing else waits with it.
    """

    max_taken: int = MAX_PARTITIONS
    _parts: list[Block[V] | dict[Key, V]] = field(factory=list, init=False)
    """None is empty, and no two have a key in common. The dictionaries are this broker's own."""

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __iter__(self) -> Iterator[Key]:
        for part in self._parts:
            yield from part

    def __contains__(self, key: object) -> bool:
        return any(key in part for part in self._parts)

    def meets(self, block: Block[Any]) -> bool:
        """Return whether one of the keys of a block waits."""
        return any(_common(part, block) for part in self._parts)

    def topics(self) -> Iterator[str]:
        """Yield the name of each topic that something waits of, perhaps several times."""
        for part in self._parts:
            yield from part.topics if isinstance(part, Block) else (name for name, _ in part)

    def add(self, blocks: Sequence[Block[V]], merge: Callable[[V, V], V]) -> None:
        """Add the entries of blocks that have no key in common.

        `merge` returns what replaces an entry that waits when a later one of its key comes.
        """
        known = [[key for part in self._parts for key in _common(part, block)] for block in blocks]
        for block, keys in zip(blocks, known, strict=True):
            self._add(block, keys, merge)

    def take(self, limit: int, behind: Behind = frozenset()) -> tuple[V, ...]:
        """Remove and return the entries that have waited longest, except those whose keys are in `behind`."""
        taken = self._take_free(limit, behind)
        if not taken and self._parts:
            # A part of each block has to stay behind, so they are blocks no longer.
            self._parts = [dict(part.entries) if isinstance(part, Block) else part for part in self._parts]
            taken = self._take_free(limit, behind)
        return SharedRows.joined(taken) if taken else ()

    def _take_free(self, limit: int, behind: Behind) -> list[tuple[V, ...]]:
        """Remove and return what `take` does, but no part of a block."""
        taken: list[tuple[V, ...]] = []
        for place, part in enumerate(self._parts):
            if isinstance(part, Block):
                if not _is_free(part, behind):
                    continue
                if len(part) > limit:
                    break
                rows: tuple[V, ...] = part.rows
                self._parts[place] = {}
            else:
                keys = list(islice((key for key in part if key not in behind), limit))
                rows = tuple([part.pop(key) for key in keys])
            if rows:
                taken.append(rows)
            limit -= len(rows)
            if not limit:
                break
        self._drop_empty()
        return taken

    def remove(self, block: Block[Any]) -> list[V]:
        """Remove and return the entries that have a key of a block."""
        keys = [key for part in self._parts for key in _common(part, block)]
        removed = [self._part_of(key).pop(key) for key in keys]
        self._drop_empty()
        return removed

    def keep(self, is_kept: Callable[[V], bool]) -> None:
        """Drop the entries of which `is_kept` is not true."""
        for place, part in enumerate(self._parts):
            entries = part.entries if isinstance(part, Block) else part
            kept = {key: entry for key, entry in entries.items() if is_kept(entry)}
            if len(kept) < len(entries):
                self._parts[place] = kept
        self._drop_empty()

    def _add(self, block: Block[V], known: Sequence[Key], merge: Callable[[V, V], V]) -> None:
        """Add a block, of which the keys in `known` wait already."""
        if not known and self._stays_whole(block):
            self._parts.append(block)
            return
        for key in known:
            part = self._part_of(key)
            part[key] = merge(part[key], block.entries[key])
        if len(known) < len(block):
            self._tail().update(_without(block, known) if known else block.entries)

    def _stays_whole(self, block: Block[V]) -> bool:
        is_small = _FEW * len(block) < self.max_taken
        return len(block) <= self.max_taken and not (is_small and self._parts)

    def _part_of(self, key: Key) -> dict[Key, V]:
        """Return the dictionary that has a waiting key, which takes the place of a block."""
        place, part = next((place, part) for place, part in enumerate(self._parts) if key in part)
        if isinstance(part, Block):
            part = self._parts[place] = dict(part.entries)
        return part

    def _tail(self) -> dict[Key, V]:
        """Return the dictionary at the end, which may be a new one."""
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, dict):
            last = {}
            self._parts.append(last)
        return last

    def _drop_empty(self) -> None:
        self._parts = [part for part in self._parts if part]


Behind = Waiting[Any] | AbstractSet[Key]
"""The keys of entries that have to arrive before those that wait."""


def _common(part: Block[V] | dict[Key, V], block: Block[Any]) -> Iterable[Key]:
    """Return the keys that a part and a block have in common, in the order of the block."""
    if isinstance(part, Block):
        if not part.shares_topic(block):
            return ()
        part = part.entries
    return () if part.keys().isdisjoint(block.entries) else [key for key in block.entries if key in part]


def _without(block: Block[V], keys: Iterable[Key]) -> dict[Key, V]:
    left = dict(block.entries)
    for key in keys:
        del left[key]
    return left


def _is_free(block: Block[V], behind: Behind) -> bool:
    """Return whether no entry has to stay behind."""
    if isinstance(behind, Waiting):
        return not behind.meets(block)
    return not behind or behind.isdisjoint(block.entries)
