"""`klamm rollout pause`, `resume`, `abort` and `undo`: what an operator wants of a rollout goes into its journal.

A process that carries the rollout out reads it there. To abort or undo, this process does so itself if there is none.
"""

from __future__ import annotations

import getpass
import socket
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import click
import trio

from controller.rollout.states import Happening, HeldBy, Phase
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.reassignment.throttling import throttle_option
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.options import Options, change_options, quiet_options
from klamm.cli.rollout.plan_files import PlanFiles, Taken, plan_argument
from klamm.cli.rollout.run import carry_out
from klamm.cli.running import run

_AGAIN_SECONDS: Final = 0.2
_PHASES: Final = {
    Happening.ABORT: frozenset({Phase.ABORTING, Phase.ABORTED}),
    Happening.UNDO: frozenset({Phase.ABORTING_TO_UNDO, Phase.UNDOING}),
}


@click.command()
@plan_argument
def pause(plan: Path) -> None:
    """Begin no more moves of PLAN. Those in flight continue."""
    files = PlanFiles(plan)
    history = _wish(files, Happening.PAUSE)
    _tell(files, history, "paused")


@click.command()
@plan_argument
@click.option("--without-dead", is_flag=True, help="Go on although brokers have died since it was started.")
def resume(plan: Path, *, without_dead: bool) -> None:
    """Begin moves of PLAN again, after a pause."""
    files = PlanFiles(plan)
    if without_dead:
        _journal_of(files).add("brokers", brokers=[])
    history = _wish(files, Happening.RESUME)
    _tell(files, history, "resumed")


@click.command(name="set")
@plan_argument
@change_options
def set_(plan: Path, changes: Mapping[str, int]) -> None:
    """Change limits and the throttle while PLAN is carried out.

    The next `run` has its own again.
    """
    files = PlanFiles(plan)
    journal, holder = _journal_of(files), files.holder
    if not changes:
        raise click.UsageError("name what to change, such as --in-flight or --throttle")
    if holder is None:
        raise click.ClickException("no process carries the plan out now: give the options to `klamm rollout run`")
    journal.add("set", **changes)
    click.echo(f"changed: the rollout is carried out by {holder}")


@click.command()
@plan_argument
@cluster_options
def abort(cluster: Cluster, plan: Path) -> None:
    """Cancel what is in flight, and keep the finished ones."""
    _end(cluster, PlanFiles(plan), Happening.ABORT, quiet_options(None))


@click.command()
@plan_argument
@throttle_option
@cluster_options
def undo(cluster: Cluster, plan: Path, throttle: int | None) -> None:
    """Cancel what is in flight, and move the finished ones back.

    Partitions stay as they are whose original replicas are not all alive, or that somebody else has moved since. The
    way back has the limits of a new rollout, and the throttle that is given here.
    """
    _end(cluster, PlanFiles(plan), Happening.UNDO, quiet_options(throttle))


def _end(cluster: Cluster, files: PlanFiles, what: Happening, options: Options) -> None:
    content = files.read()
    _wish(files, what)
    wanted = Phase.ABORTED if what is Happening.ABORT else Phase.UNDONE
    is_told = False
    while True:
        try:
            with files.locked():
                work = partial(carry_out, files=files, plan=content, options=options, wanted=wanted)
                sys.exit(cluster.ask_moves(work))
        except Taken as taken:
            if not is_told:
                click.echo(f"{taken} carries the plan out, and was asked to {what.value}: waiting for it", err=True)
            is_told = True
            run(partial(trio.sleep, _AGAIN_SECONDS))


def _wish(files: PlanFiles, what: Happening) -> History:
    """Put what an operator wants into the journal; return what it tells then. Raises click.ClickException."""
    journal = _journal_of(files)
    history = History()
    history.take(journal.read())
    state = history.state
    if state.after(what) != state:
        journal.add("happened", what=what.value, by=f"{getpass.getuser()} on {socket.gethostname()}")
        history.take(journal.read())
    elif not _is_so(history, what):
        raise click.ClickException(f"the rollout is {state}: there is nothing to {what.value}")
    return history


def _is_so(history: History, what: Happening) -> bool:
    """Return whether what is wanted is so already, or will be."""
    phases = _PHASES.get(what, frozenset())
    is_paused = what is Happening.PAUSE and HeldBy.OPERATOR in history.state.holds
    is_resumed = what is Happening.RESUME and not history.state.is_over
    return history.state.phase in phases or is_paused or is_resumed


def _journal_of(files: PlanFiles) -> Journal:
    if not files.journal.exists():
        raise click.ClickException(f"no rollout of {files.path} has begun: `klamm rollout run` begins one")
    return Journal(files.journal)


def _tell(files: PlanFiles, history: History, done: str) -> None:
    holder = files.holder
    if holder is None:
        click.echo(
            f"{done}: no process carries the plan out now; the next `klamm rollout run` finds it {history.state}"
        )
    else:
        click.echo(f"{done}: the rollout is {history.state}, carried out by {holder}")
