"""`klamm rollout pause`, `resume`, `set`, `abort`, `undo` and `remove`: what an operator wants of a rollout.

The controller is asked for it, if the rollout is its own. Otherwise it goes into the journal beside the plan, where a
process that carries the rollout out reads it. To abort or undo, this process does so itself if there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import click
import trio

from controller.admin.client import AdminClient
from controller.rollout.states import GIVEN, Happening, HeldBy, Phase
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.reassignment.throttling import throttle_option
from klamm.cli.rollout.described import report_of
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.naming import Named, Nowhere, operator, rollout_argument
from klamm.cli.rollout.options import Options, change_options, quiet_options
from klamm.cli.rollout.plan_files import PlanFiles, Taken
from klamm.cli.rollout.run import carry_out
from klamm.cli.running import run
from transport.messages import RolloutChanges, RolloutOrder

_AGAIN_SECONDS: Final = 0.2


@click.command()
@rollout_argument
@cluster_options
def pause(cluster: Cluster, rollout: str) -> None:
    """Begin no more moves of ROLLOUT. Those in flight continue."""
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        _order(cluster, named, RolloutOrder.PAUSE)
    else:
        _tell(files, _wish(files, Happening.PAUSE), "paused")


@click.command()
@rollout_argument
@click.option("--without-dead", is_flag=True, help="Continue although brokers have died since it was started.")
@click.option("--ignore-min-isr", is_flag=True, help="Continue while partitions are under min ISR, from now on.")
@cluster_options
def resume(cluster: Cluster, rollout: str, *, without_dead: bool, ignore_min_isr: bool) -> None:
    """Begin moves of ROLLOUT again, after a pause."""
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        changes = RolloutChanges(ignore_min_isr=True if ignore_min_isr else None)
        _order(cluster, named, RolloutOrder.RESUME, changes, without_dead=without_dead)
        return
    if without_dead:
        Journal(files.journal).add("brokers", brokers=[])
    if ignore_min_isr:
        Journal(files.journal).add("min_isr", ignored=True)
    _tell(files, _wish(files, Happening.RESUME), "resumed")


@click.command(name="set")
@rollout_argument
@change_options
@cluster_options
def set_(cluster: Cluster, rollout: str, changes: Mapping[str, Any]) -> None:
    """Change limits and the throttle while ROLLOUT is carried out.

    The controller keeps them. The next `run` from outside has its own again.
    """
    if not changes:
        raise click.UsageError("name what to change, such as --in-flight or --throttle")
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        _order(cluster, named, RolloutOrder.SET, RolloutChanges(**changes))
        return
    holder = files.holder
    if holder is None:
        raise click.ClickException("no process carries the plan out now: give the options to `klamm rollout run`")
    Journal(files.journal).add("set", **changes)
    click.echo(f"changed: the rollout is carried out by {holder}")


@click.command()
@rollout_argument
@cluster_options
def abort(cluster: Cluster, rollout: str) -> None:
    """Cancel what is in flight, and keep the finished ones."""
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        _order(cluster, named, RolloutOrder.ABORT)
    else:
        _end(cluster, files, Happening.ABORT, quiet_options(None))


@click.command()
@rollout_argument
@throttle_option
@cluster_options
def undo(cluster: Cluster, rollout: str, throttle: int | None) -> None:
    """Cancel what is in flight, and move the finished ones back.

    Partitions stay as they are whose original replicas are not all alive, or that somebody else has moved since. The
    controller keeps its limits on the way back. From outside, it has the limits of a new rollout, and the throttle that
    is given here.
    """
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        _order(cluster, named, RolloutOrder.UNDO, RolloutChanges(throttle=throttle))
    else:
        _end(cluster, files, Happening.UNDO, quiet_options(throttle))


@click.command()
@rollout_argument
@cluster_options
def remove(cluster: Cluster, rollout: str) -> None:
    """Let the controller forget ROLLOUT, which is over.

    It cannot be undone any more.
    """
    named = Named(rollout)
    if named.from_outside is not None:
        raise click.ClickException(f"no controller keeps the rollout of {rollout}: remove the folder of the plan")
    _order(cluster, named, RolloutOrder.REMOVE)


def _order(
    cluster: Cluster,
    named: Named,
    order: RolloutOrder,
    changes: RolloutChanges | None = None,
    *,
    without_dead: bool = False,
) -> None:
    """Give an order to the controller, and say what the rollout is then."""

    async def give(admin: AdminClient, name: str) -> None:
        if not await admin.describe_rollouts([name]):
            raise Nowhere(name)
        told = await admin.change_rollout(name, order, changes, without_dead=without_dead, by=operator())
        if told is None:
            click.echo(f"rollout {name}: removed")
            return
        report = report_of(told)
        what = report.settings if order is RolloutOrder.SET else report.line
        click.echo(f"rollout {name}: {what}")

    named.ask(cluster, give)


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
    journal = Journal(files.journal)
    history = History()
    history.take(journal.read())
    state = history.state
    if state.after(what) != state:
        journal.add("happened", what=what.value, by=operator())
        history.take(journal.read())
    elif not _is_so(history, what):
        raise click.ClickException(f"the rollout is {state}: there is nothing to {what.value}")
    return history


def _is_so(history: History, what: Happening) -> bool:
    """Return whether what is wanted is so already, or will be."""
    phases = GIVEN.get(what, frozenset())
    is_paused = what is Happening.PAUSE and HeldBy.OPERATOR in history.state.holds
    is_resumed = what is Happening.RESUME and not history.state.is_over
    return history.state.phase in phases or is_paused or is_resumed


def _tell(files: PlanFiles, history: History, done: str) -> None:
    holder = files.holder
    if holder is None:
        click.echo(
            f"{done}: no process carries the plan out now; the next `klamm rollout run` finds it {history.state}"
        )
    else:
        click.echo(f"{done}: the rollout is {history.state}, carried out by {holder}")
