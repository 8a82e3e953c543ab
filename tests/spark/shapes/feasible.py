"""The judge of refusals: does any plan meet a goal? By mixed-integer programming where disks bind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from attrs import define, evolve, field, frozen
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from spark_bridge.model.brokers import BrokerState
from spark_bridge.model.goal import GoalKind
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.rules import FORCED_ONLY, STILL, Rules

_NODES: Final = 20_000
_MOST_PLACES: Final = 20_000
"""The most variables of a program: a larger one is left undecided, unless a simpler rule decides."""

_OPTIMAL, _INFEASIBLE = 0, 2


def feasible(given: Instance, *, beside: bool = False) -> bool | None:
    """Return whether there is a plan that keeps the hard rules; None where the solver could not tell.

    Args:
        given: The instance.
        beside: Whether racks count what brokers keep that get nothing.
    """
    rules = Rules.of(given)
    if str(rules.goal.kind) in STILL:
        return True
    if rules.goal.kind is GoalKind.ADD_BROKERS and _names_the_ill(given, rules):
        return False
    parts = [_part(given, rules, row, beside=beside) for row in range(len(given.names))]
    if any(part.most < part.wanted for part in parts):
        return False
    if all(broker.disk is None for broker in given.brokers.rows):
        return True
    heavy = [part for part in parts if part.size]
    # What need not move mostly can stay; only where that leaves no room, all that may move is looked at.
    still = _solve(given, [part.at_rest() for part in heavy])
    return still if still or all(part == part.at_rest() for part in heavy) else _solve(given, heavy)


def _names_the_ill(given: Instance, rules: Rules) -> bool:
    return any(given.brokers.rows[b].state is not BrokerState.LIVE for b in rules.named)


@frozen
class _Part:
    """A partition, and where its replicas may be.

    Attributes:
        size: Its bytes.
        before: The brokers that it is on.
        places: The brokers that it may be on.
        groups: Those that are in one rack, for each rack.
        limits: How many replicas each of these racks may hold.
        wanted: How many replicas there shall be.
        forced: How many have to be new.
        capped: The brokers that get no more new replicas than what is forced.
        rests: Whether it stays as it is.
        fixed: The brokers that keep their replicas.
    """

    size: int
    before: frozenset[int]
    places: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    limits: tuple[int, ...]
    wanted: int
    forced: int
    capped: frozenset[int]
    rests: bool = False
    fixed: frozenset[int] = frozenset()

    @property
    def most(self) -> int:
        """Return how many replicas find a place."""
        alone = len(self.places) - sum(map(len, self.groups))
        return alone + sum(min(limit, len(group)) for limit, group in zip(self.limits, self.groups, strict=True))

    def at_rest(self) -> _Part:
        """Return the partition as one that stays as it is where it can."""
        return self if self.forced or self.wanted != len(self.before) else evolve(self, rests=True)


def _part(given: Instance, rules: Rules, row: int, *, beside: bool) -> _Part:
    before, kind = frozenset(given.replicas[row]), str(rules.goal.kind)
    wanted = rules.wanted(given.names[row][0], given.replicas[row])
    places = sorted((before - rules.drained) | rules.receivers)
    # Who is not added gets no more than what is forced, and nobody does where only that moves.
    unnamed = frozenset(places) - before - (rules.named if kind == "add-brokers" else frozenset())
    racks = sorted({rack for b in places if (rack := rules.racks[b]) is not None})
    fixed = rules.fixed_of(given.replicas[row], wanted)
    limit_of = {
        rack: max(
            rules.cap(given.replicas[row], wanted, rack) if beside else rules.limit(wanted),
            sum(rules.racks[b] == rack for b in fixed),
        )
        for rack in racks
    }
    if rules.is_stranded(given.replicas[row]):
        return _Part(given.size[row], before, tuple(sorted(before)), (), (), len(before), 0, frozenset(), rests=True)
    return _Part(
        size=given.size[row],
        before=before,
        places=tuple(places),
        groups=tuple(tuple(b for b in places if rules.racks[b] == rack) for rack in racks),
        limits=tuple(limit_of[rack] for rack in racks),
        wanted=wanted,
        forced=rules.forced(given.replicas[row], wanted),
        capped=unnamed if kind in FORCED_ONLY | {"add-brokers"} else frozenset(),
        fixed=fixed,
    )


@define
class _FeasibleProgram:
    rows: list[tuple[dict[int, float], float, float]] = field(factory=list)
    variables: int = 0

    def variable(self) -> int:
        self.variables += 1
        return self.variables - 1

    def require(self, row: dict[int, float], least: float, most: float) -> None:
        if row:
            self.rows.append((row, least, most))

    def has_solution(self) -> bool | None:
        if not self.rows:
            return True
        entries = [(r, v, value) for r, (row, _, _) in enumerate(self.rows) for v, value in row.items()]
        places, columns, values = zip(*entries, strict=True)
        matrix = csr_array((values, (places, columns)), shape=(len(self.rows), self.variables))
        result = milp(
            np.zeros(self.variables),
            integrality=np.ones(self.variables, np.int64),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, [row[1] for row in self.rows], [row[2] for row in self.rows]),
            options={"node_limit": _NODES, "time_limit": 60},
        )
        if result.x is not None or result.status == _OPTIMAL:
            return True
        return False if result.status == _INFEASIBLE else None


def _solve(given: Instance, parts: Sequence[_Part]) -> bool | None:
    moving = [part for part in parts if not part.rests]
    if sum(len(part.places) for part in moving) > _MOST_PLACES:
        return None
    program, load = _FeasibleProgram(), Counter[int]()
    for part in parts:
        load.update(dict.fromkeys(part.before if part.rests else (), part.size))
    placed = [(part, _place(program, part)) for part in moving]
    for n, broker in enumerate(given.brokers.rows):
        if broker.disk is not None:
            here = [(part, place[n]) for part, place in placed if n in place]
            _fit(program, n, here, broker.disk, load[n])
    return program.has_solution()


def _fit(program: _FeasibleProgram, broker: int, here: Sequence[tuple[_Part, int]], disk: int, load: int) -> None:
    """Hold a broker's bytes under its disk, or leave it without new ones."""
    unit, shut = max(disk, 1), program.variable()
    most = load + sum(part.size for part, _ in here)
    gains = [variable for part, variable in here if broker not in part.before]
    loads = {variable: part.size / unit for part, variable in here}
    program.require({**loads, shut: (disk - most) / unit}, -np.inf, (disk - load) / unit)
    program.require({**dict.fromkeys(gains, 1.0), shut: float(len(gains))}, -np.inf, len(gains))


def _place(program: _FeasibleProgram, part: _Part) -> dict[int, int]:
    """Add a partition's places; return the variable of each broker."""
    place = {b: program.variable() for b in part.places}
    program.require(dict.fromkeys(place.values(), 1.0), part.wanted, part.wanted)
    program.require(dict.fromkeys((v for b, v in place.items() if b in part.capped), 1.0), -np.inf, part.forced)
    for broker in sorted(part.fixed):
        program.require({place[broker]: 1.0}, 1.0, 1.0)
    for group, limit in zip(part.groups, part.limits, strict=True):
        program.require(dict.fromkeys((place[b] for b in group), 1.0), -np.inf, limit)
    return place
