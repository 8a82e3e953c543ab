"""`klamm simulate`: scenarios and random runs on a cluster in one process, on virtual time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klamm.cli.formats import Format, printing_options
from klamm.cli.names import Integer
from klamm.cli.output import partition_json, print_json, print_yaml
from klamm.cli.run_documents import RandomRun, RandomRuns, ScenarioRuns
from klamm.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from simulator.scenario.model import Scenario
    from simulator.scenario.outcome import ScenarioOutcome

Show = Callable[["ScenarioOutcome"], None]

SEED = Integer(min=0)


class SeedRange(click.ParamType[Sequence[int]]):
    """A range of seeds A..B, both ends included, or the corpus."""

    name = "A..B|corpus"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Sequence[int]:
        """Return the seeds."""
        if value == "corpus":
            from simulator.random_run import corpus

            return corpus.read()
        first, _, last = value.partition("..")
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            self.fail(f"{value!r} is not a range of seeds: write 0..99 for a hundred of them, or corpus", param, ctx)
        return range(int(first), int(last) + 1)


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from simulator.scenario.language import schema

        print_json(schema())
        context.exit()


def _require_features(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    if names:
        from simulator.random_run.features import NAMES

        for name in [name for name in names if name not in NAMES]:
            raise click.BadParameter(f"there is no feature {name!r}: the features are {', '.join(NAMES)}")
    return names


@click.command()
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of scenarios, for editors, and exit.",
)
@click.argument("scenario", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--seed", type=SEED, help="The seed of everything random; a scenario's own, or 0, if not given.")
@click.option(
    "--seeds",
    type=SeedRange(),
    help="Random runs, or the scenario, for each of these seeds; `corpus` for those that reach most.",
)
@click.option(
    "--kafka", is_flag=True, help="Random runs with brokers of Apache Kafka's, of several releases, instead of ours."
)
@click.option(
    "--with",
    "always",
    multiple=True,
    metavar="FEATURE",
    callback=_require_features,
    help="Random runs that all have this feature, such as rollouts, besides what their seeds draw; may be repeated.",
)
@click.option(
    "--shrink",
    is_flag=True,
    help="Make the failing random runs smaller: the first of each kind of failure becomes a scenario of a few events, "
    "in a new file seed-N.yaml in this folder.",
)
@printing_options((ScenarioRuns, RandomRun, RandomRuns))
def simulate(  # noqa: PLR0913, PLR0917  one for each option
    scenario: Path | None,
    seed: int | None,
    seeds: Sequence[int] | None,
    kafka: bool,
    always: tuple[str, ...],
    shrink: bool,
    output: Format,
    no_headers: bool,
) -> None:
    """Run SCENARIO.yaml on a simulated cluster, or random runs without one.

    The same seed gives the same run. The exit code is 0 only if all expectations of the scenario were met and no
    invariant was violated.
    """
    if seed is not None and seeds is not None:
        raise click.UsageError("--seed and --seeds exclude each other: use only one of them")
    if scenario is None and seed is None and seeds is None:
        raise click.UsageError("give the file of a scenario, or --seeds 0..99 for random runs")
    if shrink and scenario is not None:
        raise click.UsageError("--shrink makes random runs smaller: give it --seed or --seeds, and no scenario")
    if kafka and scenario is not None:
        raise click.UsageError("--kafka is for random runs: a scenario names releases in its cluster")
    if always and scenario is not None:
        raise click.UsageError("--with is for random runs: a scenario lists what happens")
    if shrink and output.is_document:
        raise click.UsageError("--shrink prints scenarios and tables: use it without -o")
    numbers = seeds or (seed or 0,)
    if scenario is None:
        from klamm.cli.random_runs import run_seeds

        print_value = {"json": print_json, "yaml": print_yaml}.get(output)
        headers = not no_headers
        sys.exit(
            _exit_code(
                lambda: run_seeds(numbers, print_value, shrinks=shrink, kafkas=kafka, always=always, headers=headers)
            )
        )
    own = seed is None and seeds is None
    printing = _printing(output, in_brief=not own and len(numbers) > 1, headers=not no_headers)
    sys.exit(_exit_code(lambda: _run_scenario(scenario, [None] if own else numbers, printing, output)))


def _exit_code(run: Callable[[], int]) -> int:
    """Return the exit code of a run, also after Ctrl-C, which trio may wrap in groups."""
    code = INTERRUPTED
    try:
        code = run()
    except* KeyboardInterrupt:
        click.echo("interrupted", err=True)
    return code


def _run_scenario(
    path: Path, seeds: Sequence[int | None], printing: AbstractContextManager[Show], output: Format
) -> int:
    from simulator.scenario.runner import run

    scenarios = _load(path)
    runs, failed = len(scenarios) * len(seeds), 0
    with printing as show:
        for scenario in scenarios:
            for seed in seeds:
                outcome = run(scenario, seed=seed, keep_trace=output.is_document)
                show(outcome)
                _print_misses(outcome)
                failed += not outcome.has_succeeded
    if not output.is_document and runs > 1:
        click.echo(f"{runs:,} runs, {failed:,} failed")
    return int(failed > 0)


def _load(path: Path) -> list[Scenario]:
    from simulator.scenario.faults import ScenarioFault
    from simulator.scenario.loader import load
    from transport.input_files import UnreadableFile

    try:
        return load(path)
    except ScenarioFault as fault:
        click.echo(str(fault), err=True)
        sys.exit(1)
    except UnreadableFile as fault:
        raise click.ClickException(str(fault)) from None


# --- printing: runs are printed as they end and not kept, because one with its whole trace takes megabytes -------


@contextmanager
def _tables(in_brief: bool, headers: bool) -> Iterator[Show]:
    """Print a table for each run; if `in_brief`, a line for each run that succeeded."""
    from simulator.scenario.table import lines

    def show(outcome: ScenarioOutcome) -> None:
        if in_brief and outcome.has_succeeded:
            click.echo(f"{_title(outcome)}: passed, trace {outcome.trace.digest}")
            return
        if in_brief or outcome.variant:
            click.echo(f"--- {_title(outcome)}")
        for line in lines(outcome, headers=headers):
            click.echo(line)
        if outcome.violation is not None:
            click.echo(f"see the whole trace with --seed {outcome.seed} -o json")

    yield show


@contextmanager
def _json_runs() -> Iterator[Show]:
    separator = ""

    def show(outcome: ScenarioOutcome) -> None:
        nonlocal separator
        click.echo(separator, nl=False)
        print_json(_json(outcome))
        separator = ","

    click.echo('{"runs": [')
    try:
        yield show
    finally:
        click.echo("]}")


@contextmanager
def _yaml_runs() -> Iterator[Show]:
    click.echo("runs:")
    yield lambda outcome: print_yaml([_json(outcome)])


def _printing(output: Format, *, in_brief: bool, headers: bool) -> AbstractContextManager[Show]:
    if output.is_document:
        return _json_runs() if output is Format.JSON else _yaml_runs()
    return _tables(in_brief, headers)


def _title(outcome: ScenarioOutcome) -> str:
    return ", ".join([f"seed {outcome.seed}", *(f"{name}: {value}" for name, value in outcome.variant.items())])


def _print_misses(outcome: ScenarioOutcome) -> None:
    for miss in outcome.chronicle.misses:
        click.echo(f"{outcome.path}:{miss.line}: with {_title(outcome)}: {miss.text}", err=True)
    if outcome.violation is not None:
        click.echo(f"{outcome.path}: with {_title(outcome)}: {outcome.violation}", err=True)


def _json(outcome: ScenarioOutcome) -> dict[str, Any]:
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
