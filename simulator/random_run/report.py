"""The outcomes of random runs, as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

from simulator.random_run.campaign import CampaignTally
from simulator.random_run.coverage import NEEDED, SEEDS
from simulator.random_run.plan import RunPlan
from simulator.random_run.run import RunOutcome
from simulator.trace import Trace

WIDTH: Final = 80
_EVENT_LINES: Final = 4
"""Maximum lines shown for an event; an order for all partitions has hundreds."""


def failure_lines(outcome: RunOutcome) -> Iterator[str]:
    """Yield the report of a failed run: the invariant, the last events, and the command to replay it."""
    yield from _wrapped(f"seed {outcome.seed} failed: {outcome.violation}", indent=2)
    for line in outcome.last:
        yield from _wrapped(line, indent=14, at_most=_EVENT_LINES)
    yield f"replay it with: klamm simulate{outcome.options}"


def tally_lines(tally: CampaignTally, *, headers: bool = True) -> Iterator[str]:
    """Yield the counts, those that a campaign requires first and with the required numbers."""
    names = [*NEEDED, *sorted(set(tally.counts) - set(NEEDED))]
    width = max(map(len, names))
    if headers:
        yield f"{'':{width}}  {'count':>8}  {f'per {SEEDS:,} seeds':>15}  {'needed':>6}"
    for name in names:
        count, needed = tally.counts[name], NEEDED.get(name)
        per_seeds = count * SEEDS / max(tally.runs, 1)
        yield f"{name:{width}}  {count:8,}  {per_seeds:15,.0f}  {'-' if needed is None else needed:>6}"
    runs = f"{tally.runs:,} run{'' if tally.runs == 1 else 's'}"
    total = f"{runs}, {len(tally.digests):,} of them different, {tally.failed:,} failed"
    if tally.failures:
        more = tally.failed - len(tally.failures)
        total += f": {', '.join(str(outcome.seed) for outcome in tally.failures)}{f' and {more:,} more' * bool(more)}"
    yield from _wrapped(total, indent=2)


def tally_json(tally: CampaignTally) -> dict[str, Any]:
    """Return the tally as JSON."""
    return {
        "runs": tally.runs,
        "different_runs": len(tally.digests),
        "failed": tally.failed,
        "failures": [outcome_json(outcome) for outcome in tally.failures],
        "counts": dict(sorted(tally.counts.items())),
        "needed_per_1000_seeds": NEEDED,
    }


def run_lines(plan: RunPlan, outcome: RunOutcome) -> Iterator[str]:
    """Yield the plan of a single run, and its outcome."""
    for line in plan.text().splitlines():
        yield from _wrapped(line, indent=8)
    yield from (f"{count:8,}  {name}" for name, count in outcome.counts.items())
    if outcome.violation is not None:
        yield from failure_lines(outcome)
    yield f"seed {outcome.seed}: {'passed' if outcome.violation is None else 'failed'}, trace {outcome.digest}"


def _wrapped(line: str, *, indent: int, at_most: int | None = None) -> list[str]:
    """Wrap a line, without breaking words; lines after the first `at_most` are replaced by `...`."""
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        max_lines=at_most,
        placeholder=" ...",
    )


def run_json(plan: RunPlan, outcome: RunOutcome, trace: Trace) -> dict[str, Any]:
    """Return the plan and the outcome as JSON, with the whole trace."""
    entries = [entry.to_json() for entry in trace.entries]
    return {**outcome_json(outcome), "plan": plan.text().splitlines(), "trace": entries}


def outcome_json(outcome: RunOutcome) -> dict[str, Any]:
    """Return a run's outcome as JSON."""
    violation = outcome.violation
    return {
        "seed": outcome.seed,
        "digest": outcome.digest,
        "violation": None if violation is None else {"invariant": violation.invariant, "text": violation.text},
        "last": list(outcome.last),
        "counts": dict(outcome.counts),
    }
