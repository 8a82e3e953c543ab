"""Simulated annealing of a small plan: replicas move and swap at random.

A change that makes the plan worse is accepted with a probability that falls with the temperature. The state is in
lists of Python numbers, because they are faster than arrays when one element is read at a time.
"""

from __future__ import annotations

from math import log
from random import Random

import numpy as np
from attrs import define, field

from spark_bridge.kernel.deal import forced
from spark_bridge.kernel.tally import loads
from spark_bridge.kernel.terms import UNBOUNDED, Terms
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import BYTES, NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS
from spark_bridge.model.lists import lengths

_OF_VIOLATION = 30.0
"""Cost of a violation as large as a whole share, in moves of a mean replica."""

_OF_EACH = 0.01
"""Fixed cost of each violation, whatever its size, as a part of a share."""

_HOMING, _REPLACING, _RELOCATING = 0.15, 0.45, 0.6
"""Thresholds for the random number that selects the kind of change.

Below the first, a replica returns home. Below the second, it returns home and another replica takes its place. Below
the third, a replica goes to any broker. Above all of them, two replicas change places.
"""

_EACH = range(3)
"""Indices of the measures."""

_ALIKE = 1e-8
"""Smaller differences between violations are rounding errors."""

Moves = tuple[tuple[int, int, int], ...]
"""Moves of replicas: row, column and target broker of each."""

Load = tuple[int, int, int]

Value = tuple[float, int, int]
"""How far a plan is out of bounds, its cost, and how many partitions keep none of their replicas."""


@define(eq=False)
class Drawn:
    """A set of numbers to draw from at random.

    The order of `members` depends only on the sequence of calls, so runs from the same seed draw the same numbers.
    """

    members: list[int] = field(factory=list)
    _place: dict[int, int] = field(factory=dict)

    def put(self, number: int, *, is_there: bool) -> None:
        """Add a number, or remove it."""
        place = self._place.get(number)
        if is_there and place is None:
            self._place[number] = len(self.members)
            self.members.append(number)
        elif place is not None and not is_there:
            # The last member takes the place of the removed one, which needs no shift of the others.
            last = self.members.pop()
            del self._place[number]
            if last != number:
                self.members[place], self._place[last] = last, place


@define(eq=False)
class Annealing:
    """The state of an annealing run.

    Attributes:
        best: The lists of the best plan found so far.
        best_value: The value of that plan; less is better.
        since_best: The rows that changed since then.
    """

    takes: list[bool]
    gives: list[bool]
    receives: list[bool]
    leaves: list[bool]
    stays: list[bool]
    forced: list[int]
    weights: list[Load]
    home: list[frozenset[int]]
    may_stay: list[bool]
    lists: list[list[int]]
    places: list[tuple[int, int]]
    away: Drawn
    load: list[Load]
    bounds: list[tuple[Load, Load, tuple[float, float, float]]]
    rack: list[int]
    limit: list[int]
    disk: list[int]
    walls: list[tuple[Load, Load]]
    price: int
    mean: float
    rng: Random
    news: list[int]
    outs: list[tuple[float, float]]
    violation: float
    cost: int
    replaced: int
    best: list[list[int]]
    best_value: Value
    since_best: set[int]

    @classmethod
    def of(cls, block: Block, terms: Terms, rng: Random) -> Annealing:
        """Start from the plan of a block that contains all partitions."""
        unplanned, had = block.with_after(block.before), loads(block, len(terms.rack), before=True)
        must_move, _ = forced(unplanned, terms, View.of(unplanned, 0, Turn(0, 1, 1), terms, had))
        factors = np.minimum(lengths(block.after), MOST_REPLICAS)
        # A broker that need not shed may stay above its upper bounds.
        high = np.where(terms.sheds[:, None], terms.high, UNBOUNDED)
        bounds = zip(terms.low.tolist(), high.tolist(), (1 / terms.share).tolist(), strict=True)
        walls = terms.walls
        lists, leaves = block.after.tolist(), terms.leaves.tolist()
        home = [frozenset(b for b in row if b != NOBODY) for row in block.before.tolist()]
        started = cls(
            takes=terms.takes.tolist(),
            gives=terms.gives.tolist(),
            receives=terms.receives.tolist(),
            leaves=leaves,
            stays=terms.are_oversized(block.weights).tolist(),
            forced=must_move.sum(axis=1).tolist(),
            weights=[(replicas, size, flow) for replicas, size, flow in block.weights.tolist()],
            home=home,
            may_stay=[len(brokers) > 1 and not all(leaves[b] for b in brokers) for brokers in home],
            lists=lists,
            places=[(row, column) for row, column in np.argwhere(block.after != NOBODY).tolist()],
            away=Drawn(),
            load=[(replicas, size, flow) for replicas, size, flow in loads(block, len(terms.rack)).tolist()],
            bounds=[(tuple(low), tuple(most), tuple(per_share)) for low, most, per_share in bounds],
            rack=terms.rack.tolist(),
            limit=terms.limits[factors].tolist(),
            disk=terms.disk.tolist(),
            walls=[(tuple(w), tuple(m)) for w, m in zip(walls.least.tolist(), walls.most.tolist(), strict=True)],
            price=terms.price,
            mean=float(block.weights[:, terms.price].mean()) or 1.0,
            rng=rng,
            news=[0] * len(terms.rack),
            outs=[],
            violation=0.0,
            cost=0,
            replaced=0,
            best=[list(row) for row in lists],
            best_value=(0.0, 0, 0),
            since_best=set(),
        )
        started.count()
        return started

    def count(self) -> None:
        """Compute the totals of the initial plan."""
        self.outs = [self.out(broker, load) for broker, load in enumerate(self.load)]
        self.violation = sum(violation for violation, _ in self.outs)
        for row, column in self.places:
            new = self.is_new(row, self.lists[row][column])
            self.news[self.lists[row][column]] += new
            self.cost += new * self.weights[row][self.price]
        self.replaced = sum(map(self.is_replaced, range(len(self.lists))))
        for row in range(len(self.lists)):
            self.away.put(row, is_there=self.is_away(row))
        self.keep()

    def keep(self) -> None:
        """Record the current plan as the best."""
        self.best_value = self.value
        for row in self.since_best:  # the order does not matter: rows are independent
            self.best[row] = list(self.lists[row])
        self.since_best.clear()

    @property
    def value(self) -> Value:
        """Return the value by which plans are compared."""
        return max(0.0, round(self.violation, 9)), self.cost, self.replaced

    @property
    def energy(self) -> float:
        """Return the cost of the plan including violations, in moves of a mean replica."""
        return _OF_VIOLATION * sum(penalty for _, penalty in self.outs) + self.cost / self.mean

    def out(self, broker: int, load: Load) -> tuple[float, float]:
        """Return how far a broker with a load is out of bounds, without and with the fixed cost of each violation."""
        low, high, per_share = self.bounds[broker]
        total = each = 0.0
        for m in _EACH:
            have = load[m]
            if have > high[m]:
                total += (have - high[m]) * per_share[m]
                each += _OF_EACH
            elif have < low[m]:
                total += (low[m] - have) * per_share[m]
                each += _OF_EACH
        return total, total + each

    def run(self, steps: int, temperature: float) -> None:
        """Anneal at a temperature, in moves of a mean replica."""
        for _ in range(steps):
            if moves := self.propose():
                self._consider(moves, temperature)

    def _consider(self, moves: Moves, temperature: float) -> None:
        """Make a change if it is good enough for the temperature.

        Most changes are not, so each is rejected as early as possible.
        """
        lists, before = self.lists, self.outs
        dearer, room = 0, 0.0
        concerned = set()
        # Leaving home costs the price of a replica and a return refunds it; between strange brokers a move is free.
        for row, column, target in moves:
            source, home = lists[row][column], self.home[row]
            dearer += self.weights[row][self.price] * ((source in home) - (target in home))
            concerned.add(source)
            concerned.add(target)
        for broker in concerned:  # sets of small integers have the same order everywhere
            room += before[broker][1]
        # Metropolis' rule accepts a change with probability exp(-increase / temperature). The random number is drawn
        # first, so that the largest acceptable increase is known before the loads are computed.
        heat = -temperature * log(1.0 - self.rng.random())
        room += (heat - dearer / self.mean) / _OF_VIOLATION
        # Even if no violation were left, the change would cost too much.
        if room < 0:
            return
        outs: dict[int, tuple[float, float]] = {}
        loads = self.loads_after(moves)
        for broker, load in loads.items():
            outs[broker] = out = self.out(broker, load)
            room -= out[1]
            if room < 0 or (load[BYTES] > self.disk[broker] and self._is_given(broker, moves)):
                return
        # A change that is good enough may still pass a wall.
        if any(self._is_barred(broker, load) for broker, load in loads.items()):
            return
        self._apply(moves, loads, outs)
        self.cost += dearer
        if self.violation < self.best_value[0] + _ALIKE and self.value < self.best_value:
            self.keep()

    def is_new(self, row: int, broker: int) -> bool:
        """Return whether a replica of this partition would be new on a broker."""
        return broker not in self.home[row]

    def is_replaced(self, row: int) -> bool:
        """Return whether a partition of several replicas keeps none of them, although some could stay."""
        return self.may_stay[row] and self.home[row].isdisjoint(self.lists[row])

    def is_away(self, row: int) -> bool:
        """Return whether a partition has a replica on a broker that had none of it."""
        home = self.home[row]
        return any(b not in home for b in self.lists[row] if b != NOBODY)

    def _is_barred(self, broker: int, load: Load) -> bool:
        """Return whether a broker would go beyond a wall (see `Walls`), or farther beyond it."""
        now, (least, most) = self.load[broker], self.walls[broker]
        return any(now[m] < load[m] > most[m] or now[m] > load[m] < least[m] for m in _EACH)

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
            target = int(draw() * len(self.load))
            column = self._making_room(row, column, target)
            return ((row, column, target),) if self.may(row, column, target) else ()
        # An exchange changes loads only by the difference of two replicas, which fits where brokers are full.
        other, other_column = self.places[int(draw() * len(self.places))]
        two = self.lists[other][other_column]
        column = self._making_room(row, column, two)
        one = self.lists[row][column]
        if row == other or not (self.may(row, column, two) and self.may(other, other_column, one)):
            return ()
        return ((row, column, two), (other, other_column, one))

    def _homing(self) -> Moves:
        """Draw a replica that is away from home, and a home broker of its partition for it to return to."""
        draw, rows = self.rng.random, self.away.members
        if not rows:
            return ()
        row = rows[int(draw() * len(rows))]
        holders, home = self.lists[row], self.home[row]
        away = [c for c, b in enumerate(holders) if b not in home and b != NOBODY]
        empty = sorted(home.difference(holders))
        if not empty:
            return ()
        column, target = away[int(draw() * len(away))], empty[int(draw() * len(empty))]
        return ((row, column, target),) if self.may(row, column, target) else ()

    def _replacing(self, home: tuple[int, int, int]) -> Moves:
        """Draw a replica that takes the place left by one that returns home."""
        left = self.lists[home[0]][home[1]]
        row, column = self.places[int(self.rng.random() * len(self.places))]
        return (home, (row, column, left)) if row != home[0] and self.may(row, column, left) else ()

    def may(self, row: int, column: int, target: int) -> bool:
        """Return whether the rules, apart from that of disks, permit moving a replica to another broker."""
        holders, home = self.lists[row], self.home[row]
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
        rack = self.rack[target]
        # A move within a rack does not change how many replicas the rack has.
        if rack >= 0 and rack != self.rack[source]:
            there = [b for b in holders if b != NOBODY and self.rack[b] == rack]
            return len(there) < self.limit[row]
        return True

    def _making_room(self, row: int, column: int, target: int) -> int:
        """Return the column of the replica to move to a broker.

        If the broker's rack is at its limit, only a replica from that rack can move there, so one of these is drawn.
        """
        rack, holders = self.rack[target], self.lists[row]
        if rack < 0 or rack == self.rack[holders[column]]:
            return column
        there = [c for c, b in enumerate(holders) if b != NOBODY and self.rack[b] == rack]
        return column if len(there) < self.limit[row] else self.rng.choice(there)

    def _is_forced(self, row: int, column: int) -> bool:
        """Return whether a replica may be placed as a forced one, on a broker that does not take.

        A partition has no more such replicas than it must move.
        """
        home = self.home[row]
        places = (c for c, b in enumerate(self.lists[row]) if b != NOBODY and b not in home and not self.takes[b])
        return sum(1 for c in places if c != column) < self.forced[row]

    def _is_given(self, broker: int, moves: Moves) -> bool:
        """Return whether a broker would have a new replica after moves; only then the limit of its disk applies."""
        new = self.news[broker]
        for row, column, target in moves:
            new += (target == broker) and self.is_new(row, broker)
            new -= (self.lists[row][column] == broker) and self.is_new(row, broker)
        return new > 0

    def loads_after(self, moves: Moves) -> dict[int, Load]:
        """Return the loads that the brokers concerned would have after moves."""
        loads: dict[int, Load] = {}
        for row, column, target in moves:
            source = self.lists[row][column]
            replicas, size, flow = self.weights[row]
            had = loads.get(source) or self.load[source]
            loads[source] = (had[0] - replicas, had[1] - size, had[2] - flow)
            had = loads.get(target) or self.load[target]
            loads[target] = (had[0] + replicas, had[1] + size, had[2] + flow)
        return loads

    def _apply(self, moves: Moves, loads: dict[int, Load], outs: dict[int, tuple[float, float]]) -> None:
        for row, column, target in moves:
            self.news[self.lists[row][column]] -= self.is_new(row, self.lists[row][column])
            self.news[target] += self.is_new(row, target)
            self.replaced -= self.is_replaced(row)
            self.lists[row][column] = target
            self.replaced += self.is_replaced(row)
            self.away.put(row, is_there=self.is_away(row))
            self.since_best.add(row)
        for broker, load in loads.items():
            self.load[broker] = load
            self.violation += outs[broker][0] - self.outs[broker][0]
            self.outs[broker] = outs[broker]
