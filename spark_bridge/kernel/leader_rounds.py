"""The rounds in which blocks choose leaders: the view in each, and when they end.

First all blocks act at once, each for its part. What remains is little and concerns few brokers; a single block, which
sees exact loads, can usually do it. Each round that changes anything brings the cluster closer to its bounds. Rounds
end when a whole cycle has changed nothing; planning again then changes nothing either.
"""

from __future__ import annotations

from attrs import define, evolve, field

from spark_bridge.kernel.cycle import Cycle
from spark_bridge.kernel.leader_view import FINEST, Integers, LeaderView

GRAIN = 4.0**-4
"""The grain of several blocks (see `LeaderView.grain`)."""

_CYCLE: tuple[tuple[bool, float | None], ...] = ((True, None), (True, GRAIN), (False, GRAIN))
"""The rounds of a cycle: whether all blocks act or only the first, and their grain."""

MOST_ROUNDS = 100
"""The most rounds. Usually one to five suffice; more are needed if brokers share partitions with few others, because
leaders then pass slowly from one to the next."""


@define
class LeaderRounds:
    """The rounds of one plan: the driver gets a view, passes it to each block, and sums their leaders.

    Attributes:
        start: The view of a single block with all partitions; its `load` is from before the first round.
        blocks: The number of blocks.
    """

    start: LeaderView
    blocks: int
    _cycle: Cycle = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._cycle = Cycle(len(_CYCLE), MOST_ROUNDS) if self.blocks > 1 else Cycle(1, 1)

    def view(self, load: Integers) -> LeaderView | None:
        """Return the next view, given the leaders of each broker now; None if nothing remains to do."""
        now = evolve(self.start, load=load)
        if not now.lacking() or (turn := self._cycle.turn(load)) is None:
            return None
        together, grain = _CYCLE[turn] if self.blocks > 1 else (False, FINEST)
        return evolve(now, grain=grain, copies=self.blocks if together else 1)
