"""A plan of thousands of moves, carried out by controllers that are killed meanwhile: limits, logs and throttles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.great_rollout import KILLS, LARGE, LIMITS, SMALL, Outcome, Size, great_rollout


def judge(outcome: Outcome, size: Size) -> None:
    assert outcome.counts == {"done": size.moves}
    assert outcome.faults == []
    # Every commit of every controller that was in office was seen, and none had too much in flight.
    assert (outcome.gaps, outcome.epochs) == ([], KILLS + 1)
    assert outcome.excesses == []
    assert outcome.most["in"] == LIMITS.into
    before, after = outcome.throttles
    assert after == before


@pytest.mark.soak
@pytest.mark.requirement("A1", "A2", "A8")
async def test_a_thousand_moves_keep_to_the_limits_and_lose_nothing(zookeeper: str, tmp_path: Path) -> None:
    judge(await great_rollout(f"{zookeeper}/great-rollout", tmp_path, SMALL), SMALL)


@pytest.mark.soak
@pytest.mark.requirement("A1", "A2", "A8")
async def test_ten_thousand_moves_and_the_time_left_at_half_time(zookeeper: str, tmp_path: Path) -> None:
    outcome = await great_rollout(f"{zookeeper}/greater-rollout", tmp_path, LARGE)
    judge(outcome, LARGE)
    assert 0.75 <= outcome.told / outcome.took <= 1.25
