"""`klamm rollout status`: how far a rollout is, by its journal; no cluster is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from controller.rollout.states import MoveState, Phase
from klamm.cli.connect import output_option
from klamm.cli.output import print_document, print_table
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.plan_files import PlanFiles, plan_argument
from klamm.cli.rollout.run import counts_in_words
from klamm.cli.units import duration, moment, rate, size
from transport.messages import UNKNOWN

_ODD: Final = frozenset({MoveState.OVERRIDDEN, MoveState.SKIPPED, MoveState.FAILED})


@click.command()
@plan_argument
@output_option
def status(plan: Path, output: str) -> None:
    """Show how far it is, what it waits for, and what is not as planned."""
    files = PlanFiles(plan)
    content = files.read()
    history = History()
    history.take(Journal(files.journal).read())
    if history.digest is None:
        raise click.ClickException(f"no rollout of {plan} has begun: `klamm rollout run` begins one")
    total, holder = len(content.file.targets), files.holder
    if output != "table":
        print_document(_document(history, total, holder), output)
        return
    print_table(("rollout", str(plan)), _rows(history, total, holder))
    odd = list(_odd(history))
    if odd:
        click.echo()
        print_table(("partition", "move", "because"), odd)


def _rows(history: History, total: int, holder: str | None) -> Iterator[tuple[str, str]]:
    yield "state", str(history.state)
    if history.brake and history.state.is_paused:
        yield "because", history.brake
    yield "started", moment(history.started_ms)
    if not history.state.is_over:
        yield "carried out by", holder or "no process: `klamm rollout run` goes on"
    yield "moves", counts_in_words(history.counts(total))
    progress = history.progress
    if not progress or history.state.is_over:
        return
    yield "bytes left", size(progress["bytes_left"])
    if progress["bytes_per_second"] is not None:
        yield "rate", rate(progress["bytes_per_second"])
    if progress["seconds_left"] is not None:
        within = "" if progress["error"] is None else f", so far within {progress['error']:.0%}"
        yield "time left", duration(progress["seconds_left"] * 1000) + within
    for text, count in progress["waits"].items():
        yield f"{count:,} wait", text
    yield "as of", moment(progress.get("at", UNKNOWN))


def _odd(history: History) -> Iterator[tuple[str, str, str]]:
    for tp, why in sorted(history.why.items()):
        state = history.state_of(tp)
        if state in _ODD or history.state.phase is Phase.UNDONE:
            yield str(tp), state.value, why


def _document(history: History, total: int, holder: str | None) -> dict[str, Any]:
    counts = history.counts(total)
    return {
        "state": history.state.phase.value,
        "paused_by": sorted(hold.value for hold in history.state.holds),
        "brake": history.brake if history.state.is_paused else "",
        "started_ms": history.started_ms,
        "carried_out_by": holder,
        "moves": {state.value: count for state, count in counts.items()},
        "progress": {name: value for name, value in history.progress.items() if name != "is"} or None,
        "not_as_planned": [{"partition": name, "move": state, "because": why} for name, state, why in _odd(history)],
    }
