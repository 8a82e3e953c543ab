"""The rounds in which blocks choose leaders side by side: what they are shown in each, and when it is enough.

First all blocks act at once, each for its part. What is left then is little, and sits with few brokers; one block
alone, which sees things as they are, can mostly do it. A round that changes anything brings the whole nearer to its
bounds. So rounds end when a whole cycle of them has changed nothing, and planning again what they have made changes
nothing either.
"""

from __future__ import annotations

from attrs import define, evolve, field

from spark_bridge.kernel.cycle import Cycle
from spark_bridge.kernel.leader_view import FINEST, Integers, LeaderView

GRAIN = 4.0**-4
"""How fine many blocks compare loads beyond the bounds, as a part of a broker's share."""

_CYCLE: tuple[tuple[bool, float | None], ...] = ((True, None), (True, GRAIN), (False, GRAIN))
"""The rounds of a cycle: whether all blocks act or the first alone, and how fine they look."""

MOST_ROUNDS = 100
"""One to five do mostly. Where brokers share partitions with few others, leaders pass from one to the next slowly."""


@define
class LeaderRounds:
    """The rounds of one plan; the driver asks for a view, hands it to every block and sums their leaders.

    Attributes:
        start: The view of a block that holds all; its `load` counts leaders before the first round.
        blocks: How many blocks there are.
    """

    start: LeaderView
    blocks: int
    _cycle: Cycle = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._cycle = Cycle(len(_CYCLE), MOST_ROUNDS) if self.blocks > 1 else Cycle(1, 1)

    def view(self, load: Integers) -> LeaderView | None:
        """Return what blocks are to see next, given every broker's leaders now; None when there is no more to do."""
        now = evolve(self.start, load=load)
        if not now.lacking() or (turn := self._cycle.turn(load)) is None:
            return None
        together, grain = _CYCLE[turn] if self.blocks > 1 else (False, FINEST)
        return evolve(now, grain=grain, copies=self.blocks if together else 1)
