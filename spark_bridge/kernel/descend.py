"""Descent: single moves and swaps that bring brokers within bounds that bulk moves left outside.

In a round of descent every broker belongs to one block, which therefore knows its load exactly. Each step takes what
cures the most for its price, and what would not lessen the sum of all violations is never done: so it ends, and from
where it ended it moves nothing again.

Several steps are taken for each look at what a broker could do. A step that cures next to nothing of what its broker is
out of bounds is not taken: bounds that no plan reaches are not chased. Each look is work, and work is bounded.
"""

from __future__ import annotations

import numpy as np
from attrs import define, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.layout import Changes, Layout
from spark_bridge.kernel.swaps import swaps
from spark_bridge.kernel.tally import Tally, loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.model.block import BYTES, BYTES_IN, NOBODY, Block

MOST_WORK = 10_000_000
"""The changes that a block may weigh up in all its descents."""

LITTLE = 0.05
"""Violations that are smaller than this part of a share for each broker, on average, need no bulk moves first."""

_OF_A_LOOK = 1_000
"""The work of a look at a broker, in changes, beside those that it weighs up."""

_PARTNERS = 12
"""The brokers that a violator is tried with."""

_MOVED = 128
"""The replicas of a broker for which moves are tried."""

_STEPS = 400
"""The steps that one violator may take in a round."""

_LEAST, _LEAST_PART = 1e-9, 1 / 400
"""The least improvement: so much, and such a part of the distance that its broker is out of bounds."""

_KEPT, _AS_GOOD = 32, 0.5
"""The number of the best changes that serve for further steps, and how good each must be, measured by the first."""


@frozen(eq=False)
class Descend:
    """The step of a round that descends.

    Attributes:
        terms: The terms.
        load: (B, 3) the cluster's loads.
        turn: Which brokers are whose.
        most_work: How many changes a block may weigh up.
    """

    terms: Terms
    load: NDArray[np.int64]
    turn: Turn
    most_work: int = MOST_WORK

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Descend in one block.

        Returns:
            The block, and as a tally the loads, the work of the block that had the most of it (`max_work`), and whether
            one had to end for it (`max_cut`).
        """
        active = self.turn.ranks(number, len(self.load)) < self.turn.copies
        done, work, is_over = block, 0, False
        # Most blocks have nothing to do where few brokers are out of bounds; a layout takes time.
        if self.terms.violation(self.load)[active].any():
            descent = Descent(Layout.of(block, self.terms, self.load, active), self.most_work)
            descent.run()
            done, work, is_over = block.with_after(descent.layout.after), descent.work, descent.is_over
        return done, {
            "load": loads(done, len(self.load)),
            "max_work": np.array([work]),
            "max_cut": np.array([int(is_over)]),
        }


@define(eq=False)
class Descent:
    """A block in descent.

    Attributes:
        layout: The block.
        most_work: How many changes may be weighed up.
        work: How many were.
        is_over: Whether the bound on work ended the descent.
    """

    layout: Layout
    most_work: int
    work: int = 0
    is_over: bool = False

    def run(self) -> None:
        """Take each broker that is out of bounds as near as it gets, the farthest first."""
        layout = self.layout
        violation = np.where(layout.active, layout.terms.violation(layout.load), 0.0)
        for broker in np.argsort(-violation, kind="stable")[: np.count_nonzero(violation > 0)].tolist():
            steps = 0
            while steps < _STEPS and (taken := self._steps(broker)):
                steps += taken

    def _steps(self, broker: int) -> int:
        """Look at what a broker could do, and do the best of it; return how many steps that were."""
        if self._out(broker) <= 0:
            return 0
        if self.work >= self.most_work:
            self.is_over = True
            return 0
        return self._take(broker, self._moves(broker)) or self._take(broker, self._swaps(broker))

    def _out(self, broker: int) -> float:
        return float(self.layout.violation_of(broker, self.layout.load[broker]))

    def _take(self, broker: int, changes: Changes | None) -> int:
        """Make the best changes, as long as there are any about as good as the first; return how many."""
        taken, first = 0, 0.0
        while changes is not None and len(changes) and (out := self._out(broker)) > 0:
            self.work += len(changes)
            gain = self.layout.gain(changes)
            value = self.layout.value(changes, gain, max(_LEAST, _LEAST_PART * out))
            best = int(value.argmax())
            first = first or value[best]
            if value[best] <= 0 or value[best] < _AS_GOOD * first:
                break
            self.layout.apply(changes, best)
            taken += 1
            others = changes.apart_from(best)
            if len(changes) > _KEPT:
                order = np.argsort(-value, kind="stable")[:_KEPT]
                others, changes = others[order], changes.some(order)
            changes = changes.some(others)
        return taken

    def _moves(self, broker: int) -> Changes | None:
        """Return the moves away from a broker or to it, None without any that is legal."""
        self.work += _OF_A_LOOK
        layout, terms, load = self.layout, self.layout.terms, self.layout.load[broker]
        nobody = np.zeros(0, np.intp)
        pairs = [(nobody, nobody)]
        if terms.sheds[broker] and (load > terms.high[broker]).any():
            targets = np.array(self._partners(broker, takers=True), np.intp)
            pairs.append(_pairs(layout, layout.few(broker, _MOVED), targets))
        if terms.takes[broker] and (load < terms.low[broker]).any():
            sources = [layout.few(partner, _MOVED) for partner in self._partners(broker, takers=False)]
            pairs.append(_pairs(layout, np.concatenate([nobody, *sources]), np.array([broker], np.intp)))
        places, other = (np.concatenate(part) for part in zip(*pairs, strict=True))
        rows, columns = layout.at(places)
        none = np.full(len(rows), NOBODY)
        if not len(rows):
            return None
        one = layout.after[rows, columns].astype(np.intp)
        cost = layout.cost(rows, one, other[:, None])[:, 0]
        return Changes(one, other, rows, columns, none, none, layout.block.weights[rows], cost)

    def _swaps(self, broker: int) -> Changes | None:
        """Return exchanges with other brokers, None where none is promising."""
        layout, terms, load = self.layout, self.layout.terms, self.layout.load[broker]
        out = (load > terms.high[broker]) | (load < terms.low[broker])
        if not (terms.gives[broker] and terms.takes[broker] and out[[BYTES, BYTES_IN]].any()):
            return None
        self.work += _OF_A_LOOK
        able = terms.gives & terms.takes
        partners = dict.fromkeys(self._partners(broker, takers=True) + self._partners(broker, takers=False))
        return swaps(layout, broker, [partner for partner in partners if able[partner]])

    def _partners(self, broker: int, *, takers: bool) -> list[int]:
        """Return brokers to move to (the emptiest) or from (the fullest), by fullness and by each measure."""
        layout, terms = self.layout, self.layout.terms
        able = layout.active & (terms.takes if takers else terms.gives)
        able[broker] = False
        candidates = np.flatnonzero(able)
        if takers and not terms.gives[broker]:
            return []
        sign = 1 if takers else -1
        parts = layout.load[candidates] / terms.share[candidates]
        found: dict[int, None] = {}
        for key in (parts.max(axis=1), *parts.T):
            found.update(dict.fromkeys(candidates[np.argsort(sign * key, kind="stable")[: _PARTNERS // 2]].tolist()))
        return list(found)


def _pairs(
    layout: Layout, places: NDArray[np.intp], targets: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places and the targets of all moves that the rules permit."""
    rows, columns = layout.at(places)
    which, target = np.nonzero(layout.legal(rows, layout.after[rows, columns].astype(np.intp), targets))
    return places[which], targets[target]
