"""The next destination of a replica."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import define

from spark_bridge.kernel.destinations import Destinations
from spark_bridge.kernel.terms import UNBOUNDED
from spark_bridge.kernel.view import Turn, View
from tests.spark.kernel.small import block_of, in_racks, terms_of

ONE = [1, 0, 0]


@define
class DestinationCase:
    """Brokers in racks with so many replicas each, of a share of ten, with a limit of so many."""

    racks: str
    replicas: list[int]
    takes: str = ""
    limit: int = UNBOUNDED
    tie: int = 0

    def destinations(self) -> Destinations:
        """Gather those that take."""
        brokers = in_racks(self.racks)
        count = len(brokers)
        load = np.array([[n, 0, 0] for n in self.replicas])
        block = block_of([[b] for b in range(count)] * 10)
        view = View.of(block, 0, Turn(0, 1, 1), terms_of([block], brokers), load)
        takes = np.array([not self.takes or str(b) in self.takes for b in range(count)], np.bool_)
        limit = np.full((count, 3), UNBOUNDED)
        limit[:, 0] = self.limit
        return Destinations.of(view, takes, brokers.rack, limit, self.tie)


@pytest.mark.parametrize(
    ("case", "holders", "barred", "chosen"),
    [
        (DestinationCase("aabb", [3, 2, 5, 4]), [], set(), 1),
        (DestinationCase("aabb", [3, 2, 5, 4]), [1], set(), 0),
        (DestinationCase("aabb", [3, 2, 5, 4]), [], {0}, 3),
        (DestinationCase("aabb", [3, 2, 5, 4]), [3], {0}, 2),
        (DestinationCase("aabb", [3, 2, 5, 4]), [], {0, 1}, None),
        (DestinationCase("aabb", [3, 2, 5, 4], takes="23"), [], set(), 3),
        (DestinationCase("aabb", [3, 2, 5, 4], takes="2"), [2], set(), None),
        (DestinationCase("aabb", [3, 2, 5, 4], limit=3), [1], set(), None),
        (DestinationCase("aabb", [3, 2, 5, 4], limit=3), [], set(), 1),
        (DestinationCase("aabb", [3, 2, 5, 4], limit=4), [1], set(), 0),
        # Those without a rack are never barred, and hold one replica each.
        (DestinationCase("__aa", [1, 2, 9, 9]), [], {0}, 0),
        (DestinationCase("__aa", [1, 2, 9, 9]), [0], {0}, 1),
        # Equally full: the tie turns the order of ids.
        (DestinationCase("____", [1, 1, 1, 1]), [], set(), 0),
        (DestinationCase("____", [1, 1, 1, 1], tie=1), [], set(), 3),
        (DestinationCase("____", [1, 1, 1, 1], tie=2), [3], set(), 2),
        (DestinationCase("aabb", [1, 1, 1, 1], tie=3), [], set(), 1),
    ],
)
def test_the_emptiest_that_may_have_it_is_chosen(
    case: DestinationCase, holders: list[int], barred: set[int], chosen: int | None
) -> None:
    assert case.destinations().choose(holders, barred, ONE) == chosen


def test_who_took_one_is_fuller_and_others_come_next() -> None:
    destinations = DestinationCase("aabb", [3, 2, 5, 4]).destinations()
    taken = []
    for _ in range(6):
        broker = destinations.choose([], set(), ONE)
        assert broker is not None
        destinations.take(broker, "0011".index("01"[broker // 2]) // 2, ONE)
        taken.append(broker)
    assert taken == [1, 0, 1, 0, 1, 3]


def test_all_that_fits_is_dealt_and_then_there_is_nobody() -> None:
    destinations = DestinationCase("aabb", [0, 0, 0, 0], limit=2).destinations()
    for _ in range(8):
        broker = destinations.choose([], set(), ONE)
        assert broker is not None
        destinations.take(broker, broker // 2, ONE)
    assert destinations.choose([], set(), ONE) is None
    assert destinations.is_empty()
    assert [load[0] for load in destinations.view.load] == [2, 2, 2, 2]


def test_who_gave_one_away_is_emptier_once_it_is_put_where_it_belongs() -> None:
    destinations = DestinationCase("aabb", [3, 2, 5, 4]).destinations()
    destinations.view.add(2, ONE, -4)
    destinations.refresh(2, 1)
    assert destinations.choose([], set(), ONE) == 2


def test_of_a_large_rack_a_few_are_looked_at_for_a_replica_that_does_not_fit() -> None:
    # Each of 40 brokers has less room than the one before is full; only the last one has room enough.
    destinations = DestinationCase("a" * 40, list(range(40))).destinations()
    for broker in range(39):
        destinations.limit[broker][1] = 5
    assert destinations.choose([], set(), [1, 6, 0]) is None
    assert destinations.choose(list(range(30)), set(), [1, 5, 0]) == 30
    assert destinations.search([], set(), [1, 6, 0]) == 39
    assert destinations.search([39], set(), [1, 6, 0]) is None
    assert destinations.search([], {0}, [1, 6, 0]) is None
    # Nobody is lost by the search.
    assert destinations.choose([], set(), ONE) == 0


def test_a_broker_that_a_replica_makes_no_fuller_is_there_once() -> None:
    destinations = DestinationCase("a" * 3, [1, 2, 3]).destinations()
    for _ in range(100):
        destinations.take(0, 0, [0, 0, 0])
    assert destinations.choose([0], set(), ONE) == 1
    destinations.view.add(0, ONE, 1)
    destinations.refresh(0, 0)
    destinations.view.add(0, ONE, -1)
    destinations.refresh(0, 0)
    assert [entry[2] for entry in destinations.heaps[0] if entry is destinations.entries.get(entry[2])] == [0, 1, 2]


def test_of_a_partition_on_many_brokers_each_other_broker_is_looked_at() -> None:
    destinations = DestinationCase("a" * 41, list(range(41))).destinations()
    assert destinations.choose(list(range(40)), set(), ONE) == 40
