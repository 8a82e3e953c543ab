"""`klamm rollout pause`, `resume`, `set`, `abort`, `undo` and `remove`: what an operator wants of a rollout.

The controller is asked for it, if the rollout is its own. Otherwise it goes into the journal beside the plan, where a
process that carries the rollout out reads it. To abort or undo, this process does so itself if there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import click
import trio

from controller.rollout.states import GIVEN, Happening, HeldBy, Phase
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.formats import View, dry_run_option, output_options
from klamm.cli.plan_ids import other_cluster_option
from klamm.cli.reassignment.throttling import throttle_option
from klamm.cli.rollout.documents import ChangedRollout, RolloutRow
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.naming import Named, operator, rollout_argument
from klamm.cli.rollout.options import Options, change_options, quiet_options
from klamm.cli.rollout.orders import effect, give, would
from klamm.cli.rollout.plan_files import PlanFiles, Taken
from klamm.cli.rollout.run import carry_out
from klamm.cli.rollout.starting import require_same
from klamm.cli.rollout.status import JournalView
from klamm.cli.running import run
from transport.messages import RolloutChanges, RolloutOrder

_AGAIN_SECONDS: Final = 0.2


@click.command()
@rollout_argument
@dry_run_option
@output_options(ChangedRollout)
@changed_cluster_options
def pause(cluster: Cluster, rollout: str, *, dry_run: bool) -> View:
    """Begin no more moves of ROLLOUT. Those in flight continue."""
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        return give(cluster, named, RolloutOrder.PAUSE, dry_run=dry_run)
    if dry_run:
        return _checked(files, RolloutOrder.PAUSE)
    return _wished(files, _wish(files, Happening.PAUSE), "paused")


@click.command()
@rollout_argument
@click.option("--without-dead", is_flag=True, help="Continue although brokers have died since it was started.")
@click.option("--ignore-min-isr", is_flag=True, help="Continue while partitions are under min ISR, from now on.")
@dry_run_option
@output_options(ChangedRollout)
@changed_cluster_options
def resume(cluster: Cluster, rollout: str, *, without_dead: bool, ignore_min_isr: bool, dry_run: bool) -> View:
    """Begin moves of ROLLOUT again, after a pause."""
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        changes = RolloutChanges(ignore_min_isr=True if ignore_min_isr else None)
        return give(cluster, named, RolloutOrder.RESUME, changes, without_dead=without_dead, dry_run=dry_run)
    if dry_run:
        return _checked(files, RolloutOrder.RESUME)
    if without_dead:
        Journal(files.journal).add("brokers", brokers=[])
    if ignore_min_isr:
        Journal(files.journal).add("min_isr", ignored=True)
    return _wished(files, _wish(files, Happening.RESUME), "resumed")


@click.command(name="set")
@rollout_argument
@change_options
@dry_run_option
@output_options(ChangedRollout)
@changed_cluster_options
def set_(cluster: Cluster, rollout: str, changes: Mapping[str, Any], *, dry_run: bool) -> View:
    """Change limits and the throttle while ROLLOUT is carried out.

    The controller keeps them. The next `run` from outside has its own again.
    """
    if not changes:
        raise click.UsageError("name what to change, such as --in-flight or --throttle")
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        return give(cluster, named, RolloutOrder.SET, RolloutChanges(**changes), dry_run=dry_run)
    holder = files.holder
    if holder is None:
        raise click.ClickException("no process carries the plan out now: give the options to `klamm rollout run`")
    if dry_run:
        report = JournalView(files).look()
        return would(report, effect(RolloutOrder.SET, report.counts))
    Journal(files.journal).add("set", **changes)
    return _ordered(files, f"changed: the rollout is carried out by {holder}")


@click.command()
@rollout_argument
@other_cluster_option
@dry_run_option
@output_options(ChangedRollout)
@changed_cluster_options
def abort(cluster: Cluster, rollout: str, *, other_cluster: bool, dry_run: bool) -> View:
    """Cancel what is in flight, and keep the finished ones."""
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        return give(cluster, named, RolloutOrder.ABORT, ids=named.ids_for(other_cluster), dry_run=dry_run)
    if dry_run:
        return _checked(files, RolloutOrder.ABORT)
    return _end(cluster, files, Happening.ABORT, quiet_options(None, other_cluster=other_cluster))


@click.command()
@rollout_argument
@throttle_option
@other_cluster_option
@dry_run_option
@output_options(ChangedRollout)
@changed_cluster_options
def undo(cluster: Cluster, rollout: str, throttle: int | None, *, other_cluster: bool, dry_run: bool) -> View:
    """Cancel what is in flight, and move the finished ones back.

    Partitions stay as they are whose original replicas are not all alive, or that somebody else has moved since. The
    controller keeps its limits on the way back. From outside, it has the limits of a new rollout, and the throttle that
    is given here.
    """
    named = Named(rollout)
    files = named.from_outside
    if files is None:
        changes, ids = RolloutChanges(throttle=throttle), named.ids_for(other_cluster)
        return give(cluster, named, RolloutOrder.UNDO, changes, ids=ids, dry_run=dry_run)
    if dry_run:
        return _checked(files, RolloutOrder.UNDO)
    return _end(cluster, files, Happening.UNDO, quiet_options(throttle, other_cluster=other_cluster))


@click.command()
@rollout_argument
@dry_run_option
@output_options(ChangedRollout)
@changed_cluster_options
def remove(cluster: Cluster, rollout: str, *, dry_run: bool) -> View:
    """Let the controller forget ROLLOUT, which is over.

    It cannot be undone any more.
    """
    named = Named(rollout)
    if named.from_outside is not None:
        raise click.ClickException(f"no controller keeps the rollout of {rollout}: remove the folder of the plan")
    return give(cluster, named, RolloutOrder.REMOVE, dry_run=dry_run)


def _end(cluster: Cluster, files: PlanFiles, what: Happening, options: Options) -> View:
    content = files.read()
    if files.holder is None:
        # Before the order is in the journal, where it would stay.
        cluster.ask_moves(partial(require_same, files=files, plan=content, options=options))
    _wish(files, what)
    wanted = Phase.ABORTED if what is Happening.ABORT else Phase.UNDONE
    is_told = False
    while True:
        try:
            with files.locked():
                work = partial(carry_out, files=files, plan=content, options=options, wanted=wanted)
                return cluster.ask_moves(work)
        except Taken as taken:
            if not is_told:
                click.echo(f"{taken} carries the plan out, and was asked to {what.value}: waiting for it", err=True)
            is_told = True
            run(partial(trio.sleep, _AGAIN_SECONDS))


def _checked(files: PlanFiles, order: RolloutOrder) -> View:
    """Return what an order would do. Raises click.ClickException if it is impossible."""
    history = History()
    history.take(Journal(files.journal).read())
    _require_possible(history, Happening(order.value))
    report = JournalView(files).look()
    return would(report, effect(order, report.counts))


def _wish(files: PlanFiles, what: Happening) -> History:
    """Put what an operator wants into the journal; return what it tells then. Raises click.ClickException."""
    journal = Journal(files.journal)
    history = History()
    history.take(journal.read())
    if _require_possible(history, what):
        journal.add("happened", what=what.value, by=operator())
        history.take(journal.read())
    return history


def _require_possible(history: History, what: Happening) -> bool:
    """Return whether what is wanted changes anything; raise click.ClickException if it is not possible."""
    state = history.state
    if state.after(what) != state:
        return True
    if not _is_so(history, what):
        raise click.ClickException(f"the rollout is {state}: there is nothing to {what.value}")
    return False


def _is_so(history: History, what: Happening) -> bool:
    """Return whether what is wanted is so already, or will be."""
    phases = GIVEN.get(what, frozenset())
    is_paused = what is Happening.PAUSE and HeldBy.OPERATOR in history.state.holds
    is_resumed = what is Happening.RESUME and not history.state.is_over
    return history.state.phase in phases or is_paused or is_resumed


def _wished(files: PlanFiles, history: History, done: str) -> View:
    holder = files.holder
    if holder is None:
        text = f"{done}: no process carries the plan out now; the next `klamm rollout run` finds it {history.state}"
    else:
        text = f"{done}: the rollout is {history.state}, carried out by {holder}"
    return _ordered(files, text)


def _ordered(files: PlanFiles, text: str) -> View:
    return View(ChangedRollout(str(files.path), "ordered", status=_status(files)), [text])


def _status(files: PlanFiles) -> RolloutRow | None:
    """Return the rollout as its journal has it; None if it has not begun, or its plan cannot be read."""
    try:
        return JournalView(files).look().document
    except click.ClickException:
        return None
