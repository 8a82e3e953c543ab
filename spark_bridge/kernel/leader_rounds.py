"""The rounds in which blocks choose leaders side by side: what they are shown in each, and when it is enough.

First all blocks act at once, each for its part. What is left then is little, and sits with few brokers; fewer and
fewer blocks act on it, up to one alone that sees things as they are. A round that changes anything brings the whole
nearer to its bounds. So rounds end when a whole cycle of them has changed nothing, and planning again what they have
made changes nothing either.
"""

from __future__ import annotations

import numpy as np
from attrs import define, evolve, field

from spark_bridge.kernel.leader_view import FINEST, Integers, LeaderView

GRAIN = 1 / 400
"""How fine many blocks compare loads beyond the bounds, as a part of a broker's share."""

_CYCLE: tuple[tuple[int, float | None], ...] = ((1, None), (1, None), (1, GRAIN), (4, GRAIN), (16, GRAIN), (0, GRAIN))
"""The rounds of a cycle: every how manieth block acts (0: one alone), and how fine it looks."""

_ALONE: tuple[tuple[int, float | None], ...] = ((1, FINEST),)

MOST_ROUNDS = 60
"""After so many rounds what is reached is kept, whatever else might be gained."""


@define
class LeaderRounds:
    """The rounds of one plan; the driver asks for a view, hands it to every block and sums their leaders.

    Attributes:
        start: The view of a block that holds all; its `load` counts leaders before the first round.
        blocks: How many blocks there are.
    """

    start: LeaderView
    blocks: int
    _round: int = field(default=0, init=False)
    _quiet: int = field(default=0, init=False)
    _last: Integers | None = field(default=None, init=False)

    def view(self, load: Integers) -> LeaderView | None:
        """Return what blocks are to see next, given every broker's leaders now; None when there is no more to do."""
        self._quiet = self._quiet + 1 if self._last is not None and np.array_equal(load, self._last) else 0
        self._last = load
        cycle = _ALONE if self.blocks == 1 else _CYCLE
        done = self._quiet == len(cycle) or self._round == (MOST_ROUNDS if self.blocks > 1 else 1)
        if done or not (now := evolve(self.start, load=load)).lacking():
            return None
        turn = self._round % len(cycle)
        self._round += 1
        every, grain = cycle[turn]
        stride = min(every or self.blocks, self.blocks)
        return evolve(now, grain=grain, stride=stride, copies=-(-self.blocks // stride), turn=turn)
