"""Each round that writes, with each path closed that it writes: an error, or the effect after a failover."""

from __future__ import annotations

import ast
from typing import Final

import pytest

from tests.controller.closed import brokers, kafkas, moves, rollouts, topics
from tests.controller.closed.sweeps import rounds_of, sweep
from tests.house.requirements import DOCUMENT

HANDLERS: Final = DOCUMENT.parents[1] / "controller" / "handlers"
COMMITTING: Final = {"commit": 0, "commit_each": 0, "write_choices": 1, "write_assignments": 1, "write_settings": 1}
"""The functions that commit a round, and the place of its name among their arguments."""

SCENARIOS: Final = {
    **topics.SCENARIOS,
    **brokers.SCENARIOS,
    **moves.SCENARIOS,
    **kafkas.SCENARIOS,
    **rollouts.SCENARIOS,
}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_rejected_write_is_an_error_or_made_up_for(name: str) -> None:
    assert await sweep(SCENARIOS[name]) > 0, "nothing of what it writes could be closed"


def names_of_rounds() -> set[str]:
    """Return the names of all rounds that the handlers commit."""
    found = set[str]()
    for path in HANDLERS.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        for call in calls:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            arguments = call.args[COMMITTING[name] :] if name in COMMITTING else []
            found.update(str(first.value) for first in arguments[:1] if isinstance(first, ast.Constant))
    return found


async def test_the_scenarios_have_every_round_that_writes() -> None:
    rounds = [await rounds_of(scenario) for scenario in SCENARIOS.values()]
    assert names_of_rounds().difference(*rounds) == set()
