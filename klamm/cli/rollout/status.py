"""`klamm rollout status`: how far a rollout is, as its controller tells, or its journal, without asking a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

import click
from attrs import define, field

from controller.admin.client import AdminClient
from controller.rollout.states import MoveState, Phase
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.rollout import described
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.naming import Named, rollout_argument
from klamm.cli.rollout.plan_files import PlanFiles
from klamm.cli.rollout.report import Odd, Report
from klamm.cli.rollout.watching import Look, print_report, watch as watch_report
from klamm.cli.running import run, stoppable
from klamm.interrupts import INTERRUPTED

_ODD: Final = frozenset({MoveState.OVERRIDDEN, MoveState.SKIPPED, MoveState.FAILED, MoveState.DELETED})


@click.command()
@rollout_argument
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever it changes, until it is over.")
@output_option
@cluster_options
def status(cluster: Cluster, rollout: str, *, watch: bool, output: str) -> None:
    """Show how far it is, what it waits for, and what is not as planned.

    ROLLOUT is the name of a rollout that the controller carries out, or a plan.
    """
    named = Named(rollout)
    files = named.from_outside
    show = partial(_watched if watch else _shown, output=output)
    if files is not None:
        sys.exit(run(partial(show, JournalView(files).look_again)))

    async def ask(admin: AdminClient, name: str) -> int:
        return await show(partial(described.look, admin, name))

    sys.exit(named.ask(cluster, ask))


async def _shown(look: Look, output: str) -> int:
    print_report(await look(), output)
    return 0


async def _watched(look: Look, output: str) -> int:
    return INTERRUPTED if await stoppable(partial(watch_report, look, output)) else 0


class NotBegun(click.ClickException):
    """A plan has no rollout yet."""


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
        """Return what the journal tells now. Raises NotBegun; click.ClickException for files that cannot be read."""
        if self._total is None:
            self._total = len(self.files.read().file.targets)
        history = self._history
        history.take(self._journal.read())
        if history.digest is None:
            raise NotBegun(f"no rollout of {self.files.path} has begun: `klamm rollout run` begins one")
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
