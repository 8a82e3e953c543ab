"""`klamm rollout status`: how far a rollout is, as its controller tells, or its journal, without asking a cluster."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final, TypeVar

import click
from attrs import define, field

from controller.admin.client import AdminClient
from controller.rollout.states import MoveState, Phase
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.formats import Format, View, printing_options, show
from klamm.cli.rollout import described
from klamm.cli.rollout.documents import RolloutRow
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.naming import Named, rollout_argument
from klamm.cli.rollout.plan_files import PlanFiles
from klamm.cli.rollout.report import Odd, Report
from klamm.cli.rollout.watching import Look, watch
from klamm.cli.running import run, stoppable
from klamm.interrupts import INTERRUPTED

T = TypeVar("T")

_ODD: Final = frozenset({MoveState.OVERRIDDEN, MoveState.SKIPPED, MoveState.FAILED, MoveState.DELETED})


@click.command()
@rollout_argument
@click.option("-w", "--watch", "follows", is_flag=True, help="Show it again whenever it changes, until it is over.")
@printing_options(RolloutRow)
@cluster_options
def status(cluster: Cluster, rollout: str, *, follows: bool, output: Format, no_headers: bool) -> None:
    """Show how far it is, what it waits for, and what is not as planned.

    ROLLOUT is the name of a rollout that the controller carries out, or a plan.
    """
    if follows:
        sys.exit(_through(cluster, Named(rollout), partial(_watched, output=output, headers=not no_headers)))
    report = _through(cluster, Named(rollout), _seen)
    show(View(report.document, report.parts), output, headers=not no_headers)


def _through(cluster: Cluster, named: Named, print_: Callable[[Look], Awaitable[T]]) -> T:
    """Print a rollout as its journal has it, or as the controller describes it."""
    files = named.from_outside
    if files is not None:
        return run(partial(print_, JournalView(files).look_again))

    async def ask(admin: AdminClient, name: str) -> T:
        return await print_(partial(described.look, admin, name))

    return named.ask(cluster, ask)


async def _seen(look: Look) -> Report:
    return await look()


async def _watched(look: Look, output: Format, *, headers: bool) -> int:
    return INTERRUPTED if await stoppable(partial(watch, look, output, headers=headers)) else 0


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
        return report_in(history, str(self.files.path), self._total, self.files.holder)

    async def look_again(self) -> Report:
        """Do the same where there is a loop."""
        return self.look()


def report_in(history: History, name: str, total: int, holder: str | None) -> Report:
    """Return a rollout of so many moves as its journal has it; `holder` is the process that carries it out."""
    return Report(
        name,
        history.state,
        history.brake,
        history.started_ms,
        holder,
        history.counts(total),
        history.progress,
        tuple(_odd(history)),
    )


def _odd(history: History) -> Iterator[Odd]:
    for tp, why in sorted(history.why.items()):
        state = history.state_of(tp)
        if state in _ODD or history.state.phase is Phase.UNDONE:
            yield Odd(str(tp), state, why)
