"""What an even plan is: replicas per broker come first, preferred leaders second.

The places to fill are of two sorts: the first of a replica list, where the replacement becomes the preferred leader,
and the later ones. Either is one replica more for its broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import frozen

from spark_bridge.dealing import Demand, deal


@frozen
class Places:
    """Places that the same brokers may fill: how many are first in their lists, how many later, and who is barred."""

    first: int
    later: int
    barred: frozenset[int] = frozenset()


@frozen
class Filled:
    """How many first and how many later places each broker fills."""

    first: Counter[int]
    later: Counter[int]


def fill(
    places: Sequence[Places], replicas: Mapping[int, int], leaders: Mapping[int, int], brokers: Sequence[int]
) -> list[Filled]:
    """Choose the brokers for all places.

    Replicas per broker end as even as they can (see `dealing`). Among the ways to reach that, one is taken that leaves
    preferred leaders nearly as even as they could be.

    Args:
        places: What to fill.
        replicas: How many replicas each broker has already.
        leaders: How many lists each broker is first of already.
        brokers: The brokers that may fill places.

    Returns:
        Who fills what, for each of the places in their order.
    """
    # Of two brokers with equally many replicas the one with fewer leaders takes more: there is room for first places.
    brokers = sorted(brokers, key=lambda b: (leaders.get(b, 0), b))
    best = deal([Demand(p.first + p.later, p.barred) for p in places], replicas, brokers)
    # First places go where leaders are few, within what the even deal of all places leaves each broker. The later
    # places nearly always make up for it.
    first = deal([Demand(p.first, p.barred) for p in places], leaders, brokers, room=_total(best))
    with_first = Counter(replicas) + _total(first)
    later = deal([Demand(p.later, p.barred) for p in places], with_first, brokers)
    if _unevenness(with_first + _total(later)) > _unevenness(Counter(replicas) + _total(best)):
        # If not, first places are chosen among the places of the even deal.
        first = deal([Demand(p.first, limits=hand) for p, hand in zip(places, best, strict=True)], leaders, brokers)
        later = [hand - leading for hand, leading in zip(best, first, strict=True)]
    return [Filled(*hands) for hands in zip(first, later, strict=True)]


def _total(hands: Sequence[Counter[int]]) -> Counter[int]:
    total: Counter[int] = Counter()
    for hand in hands:
        total.update(hand)
    return total


def _unevenness(load: Counter[int]) -> int:
    return sum(n * n for n in load.values())
