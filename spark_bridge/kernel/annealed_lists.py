"""The replica lists of a plan that is annealed: draws changes that the rules permit, and makes them.

The state is in lists of Python numbers, because they are faster than arrays when one element is read at a time.
"""

from __future__ import annotations

from bisect import insort
from random import Random

import numpy as np
from attrs import define, field

from spark_bridge.kernel.deal import forced
from spark_bridge.kernel.tally import loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.lists import lengths

_HOMING, _REPLACING, _RELOCATING = 0.15, 0.45, 0.6
"""Thresholds for the random number that selects the kind of change.

Below the first, a replica returns home. Below the second, it returns home and another replica takes its place. Below
the third, a replica goes to any broker. Above all of them, two replicas change places.
"""

Moves = tuple[tuple[int, int, int], ...]
"""A change: the row, column and target broker of a replica, or of two.

The second replica takes the place that the first leaves.
"""


@define(eq=False)
class Drawn:
    """A set of numbers to draw from at random.

    The order of `members` depends only on the sequence of calls, so runs from the same seed draw the same numbers.
    """

    members: list[int] = field(factory=list)
    _place: dict[int, int] = field(factory=dict)

    def add(self, number: int) -> None:
        """Add a number that is not in the set."""
        self._place[number] = len(self.members)
        self.members.append(number)

    def remove(self, number: int) -> None:
        """Remove a number of the set; the last member takes its place, which needs no shift of the others."""
        place, last = self._place.pop(number), self.members.pop()
        if last != number:
            self.members[place], self._place[last] = last, place


@define(eq=False)
class AnnealedLists:
    """Replica lists that change at random.

    Attributes:
        brokers: The brokers of the replicas of each row, NOBODY for none.
        racks: The racks of these replicas, negative without one.
        home: The brokers that had a row's replicas before the plan.
        away: The columns of each row's replicas that are on other brokers, in order.
        empty: The home brokers of each row without a replica of it, in order.
        lengths: The number of replicas of each row.
        may_stay: Which rows had several replicas, of which some could stay.
        stays: Which rows are oversized.
        forced: The number of replicas that each row must move.
        limit: The number of replicas of each row that a rack may have for another one to move there.
        tighter: Whether a move within a rack also has to keep to the limit (see `Terms.is_tighter`).
        places: The rows and columns of all replicas.
        takes, gives, receives, leaves: See `Terms`.
        rack: The racks of the brokers, negative without one.
        news: The number of new replicas on each broker.
        rows_away: The rows that have a replica away from home.
        replaced: The number of rows that keep no replica, although some could stay.
    """

    brokers: list[list[int]]
    racks: list[list[int]]
    home: list[frozenset[int]]
    away: list[list[int]]
    empty: list[list[int]]
    lengths: list[int]
    may_stay: list[bool]
    stays: list[bool]
    forced: list[int]
    limit: list[int]
    tighter: list[bool]
    places: list[tuple[int, int]]
    takes: list[bool]
    gives: list[bool]
    receives: list[bool]
    leaves: list[bool]
    rack: list[int]
    news: list[int]
    rng: Random
    rows_away: Drawn = field(factory=Drawn)
    replaced: int = 0

    @classmethod
    def of(cls, block: Block, terms: Terms, rng: Random) -> AnnealedLists:
        """Return the lists of a block that contains all partitions, as they are planned."""
        unplanned, load = block.with_after(block.before), loads(block, len(terms.rack), before=True)
        must_move, _ = forced(unplanned, terms, View.of(unplanned, 0, Turn(0, 1, 1), terms, load))
        limit = terms.rack_limits(block)
        rows, leaves, rack = block.after.tolist(), terms.leaves.tolist(), terms.rack.tolist()
        home = [frozenset(b for b in row if b != NOBODY) for row in block.before.tolist()]
        lists = cls(
            brokers=rows,
            racks=[[NOBODY if b == NOBODY else rack[b] for b in row] for row in rows],
            home=home,
            lengths=lengths(block.after).tolist(),
            away=[
                [c for c, b in enumerate(row) if b not in had and b != NOBODY]
                for had, row in zip(home, rows, strict=True)
            ],
            empty=[sorted(had.difference(row)) for had, row in zip(home, rows, strict=True)],
            may_stay=[len(had) > 1 and not all(leaves[b] for b in had) for had in home],
            stays=terms.are_oversized(block.weights).tolist(),
            forced=must_move.sum(axis=1).tolist(),
            limit=limit.tolist(),
            tighter=terms.is_tighter(block, limit).tolist(),
            places=[(row, column) for row, column in np.argwhere(block.after != NOBODY).tolist()],
            takes=terms.takes.tolist(),
            gives=terms.gives.tolist(),
            receives=terms.receives.tolist(),
            leaves=leaves,
            rack=rack,
            news=[0] * len(rack),
            rng=rng,
        )
        lists.count()
        return lists

    def count(self) -> None:
        """Count what is away from home."""
        for row, away in enumerate(self.away):
            for column in away:
                self.news[self.brokers[row][column]] += 1
            if away:
                self.rows_away.add(row)
            self.replaced += len(away) == self.lengths[row] and self.may_stay[row]

    def move(self, row: int, column: int, target: int) -> None:
        """Move a replica to another broker."""
        brokers, home = self.brokers[row], self.home[row]
        source = brokers[column]
        brokers[column] = target
        self.racks[row][column] = self.rack[target]
        if source in home:
            insort(self.empty[row], source)
            self._leave(row, column)
        else:
            self.news[source] -= 1
        if target in home:
            self.empty[row].remove(target)
            self._return(row, column)
        else:
            self.news[target] += 1

    def _leave(self, row: int, column: int) -> None:
        away = self.away[row]
        if not away:
            self.rows_away.add(row)
        insort(away, column)
        if len(away) == self.lengths[row]:
            self.replaced += self.may_stay[row]

    def _return(self, row: int, column: int) -> None:
        away = self.away[row]
        if len(away) == self.lengths[row]:
            self.replaced -= self.may_stay[row]
        away.remove(column)
        if not away:
            self.rows_away.remove(row)

    def propose(self) -> Moves:
        """Draw a change: a replica returns home, goes to another broker, or changes places with another.

        Returns:
            The moves, none if the rules forbid the drawn change.
        """
        draw, kind = self.rng.random, self.rng.random()
        # A return home undoes a cost. With a replacement, the broker that is left does not become emptier by it.
        if kind < _REPLACING:
            home = self._homing()
            return home if kind < _HOMING or not home else self._replacing(home[0])
        row, column = self.places[int(draw() * len(self.places))]
        # A move to any broker changes two loads by a whole replica.
        if kind < _RELOCATING:
            target = int(draw() * len(self.rack))
            column = self._making_room(row, column, target)
            return ((row, column, target),) if self.may(row, column, target) else ()
        # An exchange changes loads only by the difference of two replicas, which fits where brokers are full.
        other, other_column = self.places[int(draw() * len(self.places))]
        two = self.brokers[other][other_column]
        column = self._making_room(row, column, two)
        one = self.brokers[row][column]
        if row == other or not (self.may(row, column, two) and self.may(other, other_column, one)):
            return ()
        return ((row, column, two), (other, other_column, one))

    def _homing(self) -> Moves:
        """Draw a replica that is away from home, and a home broker of its partition for it to return to."""
        draw, rows = self.rng.random, self.rows_away.members
        if not rows:
            return ()
        row = rows[int(draw() * len(rows))]
        away, empty = self.away[row], self.empty[row]
        if not empty:
            return ()
        column, target = away[int(draw() * len(away))], empty[int(draw() * len(empty))]
        return ((row, column, target),) if self.may(row, column, target) else ()

    def _replacing(self, home: tuple[int, int, int]) -> Moves:
        """Draw a replica that takes the place left by one that returns home."""
        left = self.brokers[home[0]][home[1]]
        row, column = self.places[int(self.rng.random() * len(self.places))]
        return (home, (row, column, left)) if row != home[0] and self.may(row, column, left) else ()

    def may(self, row: int, column: int, target: int) -> bool:
        """Return whether the rules, apart from that of disks, permit moving a replica to another broker."""
        holders, home = self.brokers[row], self.home[row]
        if target in holders or self.stays[row]:
            return False
        source = holders[column]
        # A replica leaves its home only to even out, and only brokers that give are evened out. A new one may move on.
        if source in home and not self.gives[source]:
            return False
        if target in home:
            # A broker that only keeps what it has gets nothing back, because the shares of the other brokers depend on
            # what it keeps.
            if self.leaves[target] or not (self.receives[target] or self.gives[target]):
                return False
        # A new replica goes to a broker that takes; a forced one may go to any broker that receives.
        elif not (self.takes[target] or (self.receives[target] and self._is_forced(row, column))):
            return False
        rack, racks = self.rack[target], self.racks[row]
        # A move within a rack does not change how many replicas the rack has.
        if rack >= 0 and rack == racks[column]:
            return not self.tighter[row] or racks.count(rack) <= self.limit[row]
        return rack < 0 or racks.count(rack) < self.limit[row]

    def _making_room(self, row: int, column: int, target: int) -> int:
        """Return the column of the replica to move to a broker.

        If the broker's rack is at its limit, only a replica from that rack can move there, so one of these is drawn.
        """
        rack, racks = self.rack[target], self.racks[row]
        if rack < 0 or rack == racks[column] or racks.count(rack) < self.limit[row]:
            return column
        return self.rng.choice([c for c, r in enumerate(racks) if r == rack])

    def _is_forced(self, row: int, column: int) -> bool:
        """Return whether a replica may be placed as a forced one, on a broker that does not take.

        A partition has no more such replicas than it must move.
        """
        home = self.home[row]
        places = (c for c, b in enumerate(self.brokers[row]) if b != NOBODY and b not in home and not self.takes[b])
        return sum(1 for c in places if c != column) < self.forced[row]
