"""The scenario that is left of a failing seed: its file, and what it prints."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from attrs import frozen

from simulator.random_run.plan import RunPlan
from simulator.scenario import table
from simulator.scenario.loader import parse
from simulator.scenario.outcome import ScenarioOutcome
from simulator.scenario.runner import run
from simulator.scenario.writer import write_plan
from simulator.shrinking.trials import Trials

WIDTH = 78


@frozen
class Shrunk:
    """A scenario that fails as a seed did."""

    text: str
    summary: str
    """A line with the numbers of events before and after."""

    outcome: ScenarioOutcome

    def lines(self) -> Iterator[str]:
        """Yield the scenario, and what happens in it as a table."""
        yield from self.text.splitlines()
        yield ""
        yield from table.lines(self.outcome)


def smallest(trials: Trials, before: RunPlan, path: Path) -> Shrunk | None:
    """Return the smallest scenario, for a file, that fails when it is read from its text, too; None if none does.

    Raises ValueError if an action has no verb.
    """
    for plan in (trials.best, *reversed(trials.passed_through)):
        body = write_plan(plan)
        [scenario] = parse(body, str(path))
        outcome = run(scenario)
        if outcome.violation is not None and outcome.violation.startswith(trials.kind):
            summary = f"shrunk from {len(before.happenings)} events to {len(plan.happenings)}"
            command = f"{summary.capitalize()}. Run it with: klamm simulate {path}"
            comments = _comments(f"Seed {plan.seed} violates an invariant.", outcome.violation, command)
            return Shrunk("".join([*comments, body]), summary, outcome)
    return None


def free_path(seed: int, folder: Path = Path()) -> Path:
    """Return the path of a new file for a seed: `seed-N.yaml`, or the first of `seed-N-2.yaml`, ... that is free."""
    names = (f"seed-{seed}{f'-{number}' if number > 1 else ''}.yaml" for number in count(1))
    return next(path for name in names if not (path := folder / name).exists())


def _comments(*texts: str) -> Iterator[str]:
    for text in texts:
        yield from (f"# {line}\n" for line in textwrap.wrap(text, WIDTH, break_long_words=False))
