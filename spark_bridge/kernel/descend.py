"""Descent: single moves and swaps that bring brokers within bounds if bulk moves have left them outside.

In a round of descent, each broker belongs to one block, which therefore knows its load exactly. Each step makes the
change that reduces the violation most for its price. A change that does not reduce the sum of all violations is never
made, so descent ends, and moves nothing when it starts again from the result.

Several steps are taken for each look at what a broker could do. A step that reduces its broker's violation by almost
nothing is not taken, so bounds that no plan reaches are not pursued. Each look is work, and work is limited.
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
"""The most changes that a block may consider in all its descents."""

LITTLE = 0.05
"""Violations below this part of a share, on average over the brokers, need no bulk moves first."""

_OF_A_LOOK = 1_000
"""The fixed work of a look at a broker, in changes, in addition to those considered."""

_PARTNERS = 12
"""The number of partners that a broker out of bounds is tried with."""

_MOVED = 128
"""The most replicas of a broker for which moves are tried."""

_STEPS = 400
"""The number of steps after which a broker out of bounds gets no further look in a round."""

_LEAST, _LEAST_PART = 1e-9, 1 / 400
"""The least improvement: absolute, and as a part of how far its broker is out of bounds."""

_KEPT, _AS_GOOD = 32, 0.5
"""The number of best changes kept for further steps, and the least value of each as a part of the first one's."""


@frozen(eq=False)
class Descend:
    """The step of a round that descends.

    Attributes:
        terms: The terms.
        load: (B, 3) the cluster's loads.
        turn: The round, which determines the brokers of each block.
        most_work: The most changes that a block may consider.
    """

    terms: Terms
    load: NDArray[np.int64]
    turn: Turn
    most_work: int = MOST_WORK

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Descend in one block.

        Returns:
            The block, and a tally of the loads, the work (`max_work`, that of the block with the most), and whether the
            limit on work ended a descent (`max_cut`).
        """
        active = self.turn.ranks(number, len(self.load)) < self.turn.copies
        done, work, is_over = block, 0, False
        # If few brokers are out of bounds, most blocks have nothing to do and need no layout, which takes time.
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
    """The descent in one block.

    Attributes:
        layout: The state of the block.
        most_work: The most changes to consider.
        work: The number of changes considered.
        is_over: Whether the limit on work ended the descent.
    """

    layout: Layout
    most_work: int
    work: int = 0
    is_over: bool = False

    def run(self) -> None:
        """Bring each broker that is out of bounds as close as possible, the farthest first."""
        layout = self.layout
        violation = np.where(layout.active, layout.terms.violation(layout.load), 0.0)
        for broker in np.argsort(-violation, kind="stable")[: np.count_nonzero(violation > 0)].tolist():
            steps = 0
            while steps < _STEPS and (taken := self._steps(broker)):
                steps += taken

    def _steps(self, broker: int) -> int:
        """Make the best changes that a broker can make; return the number of steps.

        Swaps are tried only if no move helps.
        """
        if self._out(broker) <= 0:
            return 0
        if self.work >= self.most_work:
            self.is_over = True
            return 0
        return self._take(broker, self._moves(broker)) or self._take(broker, self._swaps(broker))

    def _out(self, broker: int) -> float:
        return float(self.layout.violation_of(broker, self.layout.load[broker]))

    def _take(self, broker: int, changes: Changes | None) -> int:
        """Make the best changes while they are about as good as the first; return their number."""
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
            # Judging a change again costs work, so only the most promising ones are.
            if len(changes) > _KEPT:
                order = np.argsort(-value, kind="stable")[:_KEPT]
                others, changes = others[order], changes.some(order)
            changes = changes.some(others)
        return taken

    def _moves(self, broker: int) -> Changes | None:
        """Return the moves away from a broker or to it, None if none is legal."""
        self.work += _OF_A_LOOK
        layout, terms, load = self.layout, self.layout.terms, self.layout.load[broker]
        nobody = np.zeros(0, np.intp)
        pairs = [(nobody, nobody)]
        # Above an upper bound: moves away.
        if terms.sheds[broker] and (load > terms.high[broker]).any():
            targets = np.array(self._partners(broker, takers=True), np.intp)
            pairs.append(_pairs(layout, layout.few(broker, _MOVED), targets))
        # Below a lower bound: moves here.
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
        """Return exchanges with other brokers, None if none is promising."""
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
        # A broker that gives nothing needs nobody to take it.
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
