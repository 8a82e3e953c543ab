"""Cancels in random runs after a failover in phase B: requested where records may still be lost, and counted."""

from __future__ import annotations

import pytest

from simulator.random_run.late_cancels import COUNT, CancelAfterFailover, unfinished
from simulator.random_run.plan import draw
from simulator.random_run.run import run
from tests.simulation.histories import MOVING, TARGET, TP, History


def is_drawn(seed: int, *, by_hand: bool) -> bool:
    actions = [happening.action for happening in draw(seed).happenings]
    return any(isinstance(action, CancelAfterFailover) and action.by_hand is by_hand for action in actions)


@pytest.mark.parametrize("by_hand", [True, False], ids=["by hand", "through the api"])
def test_some_early_seed_cancels_after_a_failover_in_phase_b(by_hand: bool) -> None:
    seeds = [seed for seed in range(1, 60) if is_drawn(seed, by_hand=by_hand)]
    outcomes = (run(draw(seed)) for seed in seeds)
    assert any(outcome.counts.get(COUNT) for outcome in outcomes)


async def test_a_move_is_unfinished_from_b4_to_b6() -> None:
    h = History()
    seen = [unfinished(h.safety.durable, [TP])]
    h.write(assignment=MOVING)
    seen.append(unfinished(h.safety.durable, [TP]))
    h.bump()
    h.grow(1, 2, 3, 4, 5, 6)
    h.bump(leader=4)
    seen.append(unfinished(h.safety.durable, [TP]))
    h.bump(isr=(4, 5, 6))
    seen.append(unfinished(h.safety.durable, [TP]))
    h.write(assignment=TARGET)
    seen.append(unfinished(h.safety.durable, [TP]))
    assert seen == [[], [], [], [TP], []]
