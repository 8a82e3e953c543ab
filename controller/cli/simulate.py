"""`klamm simulate`: a cluster in one process on virtual time, and what comes of a scenario."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from controller.cli.output import partition_json, print_json

if TYPE_CHECKING:
    from controller.simulation.scenario.outcome import Outcome

SEED = click.IntRange(min=0)


class SeedRange(click.ParamType[tuple[int, int]]):
    """A..B, both included."""

    name = "A..B"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return both ends."""
        first, _, last = value.partition("..")
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            self.fail(f"{value!r} is no range of seeds: write 0..99 for a hundred of them", param, ctx)
        return int(first), int(last)


@click.command()
@click.argument("scenario", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--seed", type=SEED, help="Of all that is left to chance; 0 for a scenario if not given.")
@click.option("--seeds", type=SeedRange(), help="Random runs, or the scenario, for each of these seeds.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def simulate(scenario: Path | None, seed: int | None, seeds: tuple[int, int] | None, output: str) -> None:
    """Run SCENARIO.yaml on a simulated cluster, or random runs without one.

    The same seed gives the same run. The exit code is 0 only if everything came about that the scenario expects, and
    nothing happened that must never happen.
    """
    if seed is not None and seeds is not None:
        raise click.UsageError("--seed is one and --seeds are many: give one of them")
    first, last = seeds or (seed or 0, seed or 0)
    if scenario is not None:
        sys.exit(_run_scenario(scenario, range(first, last + 1), output))
    if seed is None and seeds is None:
        raise click.UsageError("name a scenario's file, or give --seeds 0..99 for random runs")
    from controller.simulation.random_run.command import run_seeds

    sys.exit(run_seeds(first, last, output))


def _run_scenario(path: Path, seeds: Iterable[int], output: str) -> int:
    from controller.simulation.scenario.faults import ScenarioFault
    from controller.simulation.scenario.loader import load
    from controller.simulation.scenario.runner import run

    try:
        scenarios = load(path)
    except ScenarioFault as fault:
        click.echo(str(fault), err=True)
        return 1
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
    outcomes = []
    for scenario in scenarios:
        for seed in seeds:
            outcome = run(scenario, seed=seed, keep_trace=output != "table")
            outcomes.append(outcome)
            if output == "table":
                _print_table(outcome)
    if output == "json":
        print_json({"runs": list(map(_json, outcomes))})
    elif output == "yaml":
        _print_yaml({"runs": list(map(_json, outcomes))})
    for outcome in outcomes:
        _print_misses(outcome)
    return 0 if all(outcome.has_succeeded for outcome in outcomes) else 1


def _print_table(outcome: Outcome) -> None:
    from controller.simulation.scenario.table import lines

    if outcome.variant:
        click.echo(f"--- {_title(outcome)}")
    for line in lines(outcome):
        click.echo(line)


def _title(outcome: Outcome) -> str:
    return ", ".join(f"{name}: {value}" for name, value in outcome.variant.items())


def _print_misses(outcome: Outcome) -> None:
    variant = f" ({_title(outcome)})" if outcome.variant else ""
    for miss in outcome.chronicle.misses:
        click.echo(f"{outcome.path}:{miss.line}:{variant} {miss.text}", err=True)
    if outcome.violation is not None:
        click.echo(f"{outcome.path}:{variant} violated with seed {outcome.seed}: {outcome.violation}", err=True)


def _print_yaml(value: object) -> None:
    import orjson
    import yaml

    plain = orjson.loads(orjson.dumps(value))
    click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)


def _json(outcome: Outcome) -> dict[str, Any]:
    chronicle = outcome.chronicle
    return {
        "scenario": outcome.path,
        "variant": outcome.variant,
        "seed": outcome.seed,
        "succeeded": outcome.has_succeeded,
        "violation": outcome.violation,
        "missed": [{"line": miss.line, "text": miss.text} for miss in chronicle.misses],
        "expectations": chronicle.expectations,
        "seconds": round(outcome.seconds, 6),
        "acknowledged": outcome.acknowledged,
        "controller": outcome.controller,
        "partitions": [partition_json(state) for state in outcome.partitions],
        "rows": [
            {"time": round(row.time, 6), "controller": row.controller_id, "step": row.round} | partition_json(row.state)
            for row in chronicle.rows()
        ],
        "trace_digest": outcome.trace.digest,
        "trace": [entry.to_json() for entry in outcome.trace.entries],
    }
