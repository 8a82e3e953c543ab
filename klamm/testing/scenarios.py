"""Runs scenarios inside tests."""

from __future__ import annotations

from textwrap import dedent

from simulator.scenario.loader import parse
from simulator.scenario.runner import run


def run_scenario(text: str, *, seed: int | None = None) -> list[str]:
    """Run a scenario, written in YAML, in each of its variants, and return what it missed; empty if all went well.

    A line names an expectation that did not hold, or the invariant that was broken. The seed is the scenario's own, or
    else 0, unless one is given. Call it outside of any trio run. Raises a ScenarioFault, which is a ValueError, that
    lists every mistake in the text with its place.
    """
    missed: list[str] = []
    for scenario in parse(dedent(text), "scenario"):
        outcome = run(scenario, seed=seed)
        missed += [f"line {miss.line}: {miss.text}" for miss in outcome.chronicle.misses]
        missed += [outcome.violation] if outcome.violation is not None else []
    return missed
