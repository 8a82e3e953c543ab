"""The simulator finds each of the planted bugs, and nothing without them.

The seeds that catch the bugs change with the plans and the product: `planted_table` records them anew.
"""

from __future__ import annotations

import tomllib
from typing import Any, Final

import pytest

from simulator.random_run.plan import draw
from simulator.random_run.run import run
from tests.simulation.planted.bugs import BUGS, draws_of, plan_of, planted
from tests.simulation.planted_table import RECORD

CAUGHT_BY: Final[dict[str, dict[str, Any]]] = tomllib.loads(RECORD.read_text())
SEEDS: Final = sorted({(each["seed"], *draws_of(name)) for name, each in CAUGHT_BY.items()})
"""The seeds, and how their runs are drawn."""


def test_seeds_are_recorded_for_bugs_that_exist() -> None:
    assert set(CAUGHT_BY) <= set(BUGS)


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_fits_the_product_as_it_is(name: str) -> None:
    with planted(name):
        pass


SLOW: Final = (
    "a_bounced_broker_has_not_failed",
    "a_silent_broker_holds_up_its_channel",
    "conflicts_are_not_decided_again",
    "failed_replicas_never_lead_again",
)
"""Bugs with which a run takes many times longer than others do: the soak replays them, and five of six others."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.soak if name in SLOW or number % 6 else ())
        for number, name in enumerate(CAUGHT_BY)
    ],
)
def test_a_planted_bug_is_caught(name: str) -> None:
    with planted(name):
        violation = run(plan_of(name)(CAUGHT_BY[name]["seed"])).violation
    assert violation is not None
    assert violation.invariant == CAUGHT_BY[name]["invariant"]


@pytest.mark.soak  # `make simulate` runs hundreds of seeds without a bug
@pytest.mark.parametrize(("seed", "kafkas", "always"), SEEDS)
def test_without_it_the_same_seed_finds_nothing(seed: int, kafkas: bool, always: tuple[str, ...]) -> None:
    assert run(draw(seed, kafkas=kafkas, always=always)).violation is None
