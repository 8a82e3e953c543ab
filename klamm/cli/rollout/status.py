"""`klamm rollout status`: how far a rollout is, by its journal; no cluster is asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import click
from attrs import define, field

from controller.rollout.states import MoveState, Phase
from klamm.cli.connect import output_option
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.plan_files import PlanFiles, plan_argument
from klamm.cli.rollout.report import Odd, Report
from klamm.cli.rollout.watching import print_report, watch as watch_report
from klamm.cli.running import run, stoppable
from klamm.interrupts import INTERRUPTED

_ODD: Final = frozenset({MoveState.OVERRIDDEN, MoveState.SKIPPED, MoveState.FAILED})


@click.command()
@plan_argument
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever it changes, until it is over.")
@output_option
def status(plan: Path, *, watch: bool, output: str) -> None:
    """Show how far it is, what it waits for, and what is not as planned."""
    seen = JournalView(PlanFiles(plan))
    if not watch:
        print_report(seen.look(), output)
        return
    sys.exit(run(partial(_watched, seen, output)))


async def _watched(seen: JournalView, output: str) -> int:
    return INTERRUPTED if await stoppable(partial(watch_report, seen.look_again, output)) else 0


@define
class JournalView:
    """A rollout from outside, as its journal tells it."""

    files: PlanFiles
    _total: int | None = None
    _journal: Journal = field(init=False)
    _history: History = field(factory=History, init=False)

    def __attrs_post_init__(self) -> None:
        """Read from the beginning."""
        self._journal = Journal(self.files.journal)

    def look(self) -> Report:
        """Return what the journal tells now. Raises click.ClickException if there is no rollout."""
        if self._total is None:
            self._total = len(self.files.read().file.targets)
        history = self._history
        history.take(self._journal.read())
        if history.digest is None:
            raise click.ClickException(f"no rollout of {self.files.path} has begun: `klamm rollout run` begins one")
        return Report(
            str(self.files.path),
            history.state,
            history.brake,
            history.started_ms,
            self.files.holder,
            history.counts(self._total),
            history.progress,
            tuple(_odd(history)),
        )

    async def look_again(self) -> Report:
        """Do the same where there is a loop."""
        return self.look()


def _odd(history: History) -> Iterator[Odd]:
    for tp, why in sorted(history.why.items()):
        state = history.state_of(tp)
        if state in _ODD or history.state.phase is Phase.UNDONE:
            yield Odd(str(tp), state, why)
