"""Prints what came of random runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller.simulation.random_run.campaign import Tally
from controller.simulation.random_run.coverage import NEEDED, SEEDS
from controller.simulation.random_run.plan import Plan
from controller.simulation.random_run.run import Outcome
from controller.simulation.trace import Trace


def failure_lines(outcome: Outcome) -> Iterator[str]:
    """Yield what to know about a run that failed: the invariant, the last events, and how to see it again."""
    yield f"seed {outcome.seed} failed: {outcome.violation}"
    yield from (f"  {line}" for line in outcome.last)
    yield f"replay it with: klamm simulate --seed {outcome.seed}"


def tally_lines(tally: Tally) -> Iterator[str]:
    """Yield the counts, with those that a campaign promises and what it promises."""
    names = [*NEEDED, *sorted(set(tally.counts) - set(NEEDED))]
    width = max(map(len, names))
    yield f"{'':{width}}  {'count':>8}  {f'per {SEEDS:,} seeds':>15}  {'needed':>6}"
    for name in names:
        count, needed = tally.counts[name], NEEDED.get(name)
        per_seeds = count * SEEDS / max(tally.runs, 1)
        yield f"{name:{width}}  {count:8,}  {per_seeds:15,.0f}  {'-' if needed is None else needed:>6}"
    yield f"{tally.runs:,} runs, {len(tally.digests):,} of them different, {tally.failed:,} failed"


def tally_json(tally: Tally) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "runs": tally.runs,
        "different_runs": len(tally.digests),
        "failed": tally.failed,
        "failures": [outcome_json(outcome) for outcome in tally.failures],
        "counts": dict(sorted(tally.counts.items())),
        "needed_per_1000_seeds": NEEDED,
    }


def run_lines(plan: Plan, outcome: Outcome) -> Iterator[str]:
    """Yield what a single run did, and what came of it."""
    yield from plan.text().splitlines()
    yield from (f"{count:8,}  {name}" for name, count in outcome.counts.items())
    if outcome.violation is not None:
        yield from failure_lines(outcome)
    yield f"seed {outcome.seed}: {'passed' if outcome.violation is None else 'failed'}, trace {outcome.digest}"


def run_json(plan: Plan, outcome: Outcome, trace: Trace) -> dict[str, Any]:
    """Return the same as JSON, with the whole trace."""
    entries = [entry.to_json() for entry in trace.entries]
    return {**outcome_json(outcome), "plan": plan.text().splitlines(), "trace": entries}


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Return a run's outcome as JSON."""
    violation = outcome.violation
    return {
        "seed": outcome.seed,
        "digest": outcome.digest,
        "violation": None if violation is None else {"invariant": violation.invariant, "text": violation.text},
        "last": list(outcome.last),
        "counts": dict(outcome.counts),
    }
