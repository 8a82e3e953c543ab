"""The simulator finds each of the planted bugs, and nothing without them.

`python -m tests.simulation.test_planted` searches for the seeds again, which change with the plans and the product.
"""

from __future__ import annotations

from typing import Final

import pytest

from simulator.random_run.plan import draw
from simulator.random_run.run import run
from tests.simulation.planted import BUGS, planted

CAUGHT_BY: Final = {
    "no_fence_on_a_write": (17, "at most one controller's writes"),
    "apply_before_commit": (1, "brokers are told only what is durable"),
    "no_epoch_bump": (1, "epochs never go down"),
    "retire_without_a_live_leader_in_the_target": (3, "ended without a leader"),
    "replicas_become_the_target_before_b4": (2, "is not within the replicas"),
    "watches_are_not_armed_again_after_a_reconnect": (22, "once faults stop, everything is mended"),
    "leader_and_isr_for_a_topic_that_is_being_deleted": (1, "which it was told to delete"),
    "a_topic_is_gone_before_the_data_of_dead_brokers": (1, "which it must not have"),
    "unclean_elections_without_permission": (3, "which nothing allowed"),
    "brokers_are_relieved_of_nothing": (1, "was reported to be relieved, but leads"),
    "orders_are_heeded_in_the_middle_of_a_move": (8, "ended at"),
    "cancels_without_a_survivor": (2, "is not in the ISR"),
    "a_last_member_leaves_the_isr": (1, "became empty, although"),
    "a_cancel_forgets_the_order": (7, "was reported to return to"),
}
"""The first seed that catches each bug, and the report."""

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
    """Return the first seed that catches a bug, and the report."""
    for seed in range(1, MOST_SEEDS + 1):
        with planted(name):
            violation = run(draw(seed)).violation
        if violation is not None:
            return f"{seed}: {violation}"
    return f"not caught by {MOST_SEEDS} seeds"


if __name__ == "__main__":
    for bug in BUGS:
        print(bug, first_that_catches(bug))
