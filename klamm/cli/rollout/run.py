"""`klamm rollout run`: carry out a plan from outside the cluster, a few moves at a time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import click

from controller.admin.move_admin import MoveAdmin
from controller.rollout.states import MoveState, Phase
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.formats import Note, View, output_options
from klamm.cli.reassignment.files import NOTHING_TO_DO
from klamm.cli.reassignment.record_file import find_record
from klamm.cli.rollout.checking import checked, needs_in_words
from klamm.cli.rollout.documents import ChangedRollout
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.options import Options, run_options
from klamm.cli.rollout.plan_files import Plan, PlanFiles, Taken, plan_argument
from klamm.cli.rollout.report import Report, counts_in_words
from klamm.cli.rollout.slowing import Slowing
from klamm.cli.rollout.starting import start
from klamm.cli.rollout.status import report_in
from klamm.cli.running import stoppable
from klamm.interrupts import INTERRUPTED

NAMED: Final = 10
"""The partitions that are named which are not as planned; `status` names all."""


@click.command()
@plan_argument
@run_options
@output_options(ChangedRollout)
@changed_cluster_options
def run(cluster: Cluster, plan: Path, options: Options) -> View:
    """Carry out PLAN, a few moves at a time, until all are made.

    PLAN is the folder that `klamm plan --out` writes, or a file of Kafka's reassignment JSON. All that has to be known
    is kept beside it: run it again to continue after an interruption, with the same options or others. Ctrl-C leaves
    the moves that are in flight; `abort` cancels them. The exit code is 0 only if all moves are made.
    """
    files = PlanFiles(plan)
    try:
        if options.replan:
            # Planning takes a while to import.
            from klamm.cli.rollout.replanning import nothing_left, replanned

            with files.locked():
                if not replanned(cluster, files, other_cluster=options.other_cluster, partial=options.partial):
                    return nothing_left(str(plan))
        content = files.read()
        if not content.file.targets:
            return View(ChangedRollout(str(plan), "nothing_to_move"), [Note(NOTHING_TO_DO)])
        with files.locked():
            return cluster.ask_moves(partial(carry_out, files=files, plan=content, options=options))
    except Taken as taken:
        see = f"see `klamm rollout status {plan}`"
        raise click.ClickException(f"this plan is being carried out by {taken}: {see}") from None


async def carry_out(
    admin: MoveAdmin, files: PlanFiles, plan: Plan, options: Options, wanted: Phase = Phase.DONE
) -> View:
    """Carry a rollout on, from its start or from where it is."""
    name = str(files.path)
    journal, history = Journal(files.journal), History()
    history.take(journal.read())
    if history.state.is_over:
        return end_of(name, plan, history, wanted)
    started = await start(admin, plan, options, journal, history)
    if options.dry_run:
        status = None if history.digest is None else _report(name, plan, history).document
        return checked(name, started.needs, status, started.partial)
    if started.needs is not None:
        click.echo(needs_in_words(started.needs), err=True)
    history.take(journal.read())
    # The command that shows a rollout, or its help, needs no runner.
    from klamm.cli.rollout.runner import Runner

    slowing = Slowing(admin, await find_record(admin, files.recorded), options.throttle)
    runner = Runner(admin, plan, started.moves, options, journal, history, slowing)
    interrupted = await stoppable(runner.carry_out)
    if interrupted and not history.state.is_over:
        return _interrupted(name, plan, history)
    for broker in slowing.left:
        click.echo(f"broker {broker} keeps the throttle: run this again once it answers", err=True)
    return end_of(name, plan, history, wanted)


def _report(name: str, plan: Plan, history: History) -> Report:
    """Return the rollout as it is when this process ends."""
    return report_in(history, name, len(plan.file.targets), None)


def _interrupted(name: str, plan: Plan, history: History) -> View:
    flying = len(history.having(MoveState.IN_FLIGHT, MoveState.GOING_BACK))
    text = (
        f"interrupted: {flying:,} moves in flight continue by themselves, no others begin; run it again to continue, "
        f"or `klamm rollout abort {name}` to cancel them"
    )
    document = ChangedRollout(name, "interrupted", status=_report(name, plan, history).document)
    return View(document, [Note(text)], INTERRUPTED)


def end_of(name: str, plan: Plan, history: History, wanted: Phase) -> View:
    """Return how a rollout has ended; the exit code is 0 if it is as wanted."""
    report = _report(name, plan, history)
    counts, phase = report.counts, history.state.phase
    parts: list[str | Note] = [f"rollout: {history.state}: {counts_in_words(counts)}"]
    if phase is Phase.ABORTED and wanted is Phase.DONE and counts[MoveState.PENDING]:
        parts.append(Note("an aborted rollout does not begin again: plan again to continue from here"))
    odd = [tp for tp in sorted(history.why) if history.state_of(tp) is not MoveState.BACK]
    parts += [Note(f"{tp}: {history.state_of(tp).value}: {history.why[tp]}") for tp in odd[:NAMED]]
    if len(odd) > NAMED:
        parts.append(Note(f"and {len(odd) - NAMED:,} more: see `klamm rollout status`"))
    left = {
        Phase.DONE: report.total - counts[MoveState.DONE],
        Phase.UNDONE: len([tp for tp in history.having(MoveState.DONE) if tp in history.begun]),
    }
    is_good = phase is wanted and not left.get(phase, 0)
    return View(ChangedRollout(name, "over", status=report.document), parts, int(not is_good))
