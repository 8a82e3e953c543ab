"""The simulator finds each of six bugs when it is planted, and nothing where it is not.

`python -m tests.simulation.test_planted` looks for the seeds anew, which changes of the plans or of the product move.
"""

from __future__ import annotations

from typing import Final

import pytest

from controller.simulation.random_run.plan import draw
from controller.simulation.random_run.run import run
from tests.simulation.planted import BUGS, planted

CAUGHT_BY: Final = {
    "no_fence_on_a_write": (27, "at most one controller's writes"),
    "apply_before_commit": (2, "brokers are told only what is durable"),
    "no_epoch_bump": (1, "epochs never go down"),
    "retire_without_a_live_leader_in_the_target": (8, "ended without a leader"),
    "replicas_become_the_target_before_b4": (1, "is not within the replicas"),
    "watches_are_not_armed_again_after_a_reconnect": (4, "once faults stop, everything is mended"),
}
"""The first seed that catches each bug, and what it says."""

MOST_SEEDS: Final = 500


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    seed, complaint = CAUGHT_BY[name]
    with planted(name):
        violation = run(draw(seed)).violation
    assert violation is not None
    assert complaint in str(violation)


@pytest.mark.parametrize("seed", sorted({seed for seed, _ in CAUGHT_BY.values()}))
def test_without_it_the_same_seed_finds_nothing(seed: int) -> None:
    assert run(draw(seed)).violation is None


def first_that_catches(name: str) -> str:
    """Return the first seed that catches a bug, and what it says."""
    for seed in range(1, MOST_SEEDS + 1):
        with planted(name):
            violation = run(draw(seed)).violation
        if violation is not None:
            return f"{seed}: {violation}"
    return f"not caught by {MOST_SEEDS} seeds"


if __name__ == "__main__":
    for bug in BUGS:
        print(bug, first_that_catches(bug))
