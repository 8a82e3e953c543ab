"""The choice of seeds that reach most together: greedy set cover, again and again until there are enough."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from attrs import define, field


@define
class Masks:
    """The branches and pairs that seeds reach, as sets of bits."""

    by_seed: dict[int, int] = field(factory=dict)
    _numbers: dict[Hashable, int] = field(factory=dict)

    def add(self, seed: int, things: Iterable[Hashable]) -> None:
        """Add what a seed reaches."""
        mask = 0
        for thing in things:
            mask |= 1 << self._numbers.setdefault(thing, len(self._numbers))
        self.by_seed[seed] = mask


def best(by_seed: Mapping[int, int], count: int) -> list[int]:
    """Return up to `count` seeds, the best first: each adds most to those before it.

    Once everything is covered, the next seeds cover everything again, so that rare things are reached more than once.
    """
    left = dict(sorted(by_seed.items()))
    chosen: list[int] = []
    covered = 0
    while left and len(chosen) < count:
        seed = max(left, key=lambda seed: (left[seed] & ~covered).bit_count())
        if left[seed] & ~covered:
            covered |= left.pop(seed)
            chosen.append(seed)
        elif covered:
            covered = 0
        else:
            break
    return chosen
