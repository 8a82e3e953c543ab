"""Placement of new partitions' replicas: Kafka's default, rack-aware (KIP-36). Pure.

Leaders are assigned to the brokers round-robin. The followers of a partition come after its leader at a distance that
grows with each round, so that the followers of one broker's leaders are spread over all others. With racks, the ring of
brokers alternates between the racks, and a rack gets a second replica of a partition only when every rack has one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, count, zip_longest

from attrs import frozen


class Unplaceable(ValueError):
    """Replicas cannot be placed on these brokers; the message gives the reason and the remedy."""


@frozen
class Start:
    """The start position of a placement: random for a new topic, so that small topics do not all use the same brokers.

    `index` is the position of partition 0's leader in the ring, `shift` the extra distance of its first follower.
    """

    index: int
    shift: int


def place_replicas(
    brokers: Mapping[int, str | None], partitions: range, replication_factor: int, start: Start
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of each of `partitions`, preferred leader first, on `brokers` (racks by id).

    Raises Unplaceable if there are fewer brokers than replicas, or some brokers have a rack and others none.
    """
    if not 1 <= replication_factor <= len(brokers):
        raise Unplaceable(
            f"replication factor {replication_factor} is not between 1 and the {len(brokers)} live brokers"
        )
    without = sorted(id_ for id_, rack in brokers.items() if rack is None)
    if 0 < len(without) < len(brokers):
        cure = "give every broker a rack, or name the replicas"
        raise Unplaceable(f"brokers {without} have no rack though others have one: {cure}")
    ring, racks = _ring(brokers), _racks(brokers)
    rack_count = len(set(racks.values()))
    stride = rack_count if rack_count < len(ring) else 1
    placed = {}
    for number in partitions:
        shift = (start.shift + number // len(ring)) * stride
        first = (number + start.index) % len(ring)
        placed[number] = _replicas(ring, racks, rack_count, first, shift, replication_factor)
    return placed


def next_start(brokers: Mapping[int, str | None], replicas: Sequence[int]) -> Start:
    """Return the start with which partitions added to a topic continue its rotation; partition 0 has `replicas`."""
    ring = _ring(brokers)
    if not ring:
        return Start(0, 0)
    leader = next((id_ for id_ in sorted(ring) if id_ >= replicas[0]), ring[0])
    return Start(ring.index(leader), ring.index(leader))


def _racks(brokers: Mapping[int, str | None]) -> dict[int, str]:
    """Return the racks by broker id; a broker without a rack counts as a rack of its own."""
    return {id_: str(id_) if rack is None else rack for id_, rack in sorted(brokers.items())}


def _ring(brokers: Mapping[int, str | None]) -> list[int]:
    """Return the brokers in an order that alternates between racks; without racks, in the order of their ids."""
    if None in brokers.values():
        return sorted(brokers)
    by_rack: defaultdict[str, list[int]] = defaultdict(list)
    for id_, rack in _racks(brokers).items():
        by_rack[rack].append(id_)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [id_ for id_ in chain.from_iterable(rounds) if id_ is not None]


def _replicas(
    ring: Sequence[int], racks: Mapping[int, str], rack_count: int, first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    """Return the leader at position `first` of the ring and the followers after it, spread over the racks."""
    others = len(ring) - 1
    chosen, used = {ring[first]: None}, {racks[ring[first]]}
    for step in count(shift):
        if len(chosen) == replication_factor:
            break
        id_ = ring[(first + 1 + step % others) % len(ring)]
        if id_ not in chosen and (racks[id_] not in used or len(used) == rack_count):
            chosen[id_] = None
            used.add(racks[id_])
    return tuple(chosen)
