"""`klamm rollout run`: carry out a plan from outside the cluster, a few moves at a time."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

import click

from controller.admin.move_admin import MoveAdmin
from controller.rollout.states import MoveState, Phase
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.reassignment.files import NOTHING_TO_DO
from klamm.cli.reassignment.record_file import find_record
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.options import Options, run_options
from klamm.cli.rollout.plan_files import Plan, PlanFiles, Taken, plan_argument
from klamm.cli.rollout.report import counts_in_words
from klamm.cli.rollout.runner import Runner
from klamm.cli.rollout.slowing import Slowing
from klamm.cli.rollout.starting import start
from klamm.cli.running import stoppable
from klamm.interrupts import INTERRUPTED

NAMED: Final = 10
"""The partitions that are named which are not as planned; `status` names all."""


@click.command()
@plan_argument
@run_options
@cluster_options
def run(cluster: Cluster, plan: Path, options: Options) -> None:
    """Carry out PLAN, a few moves at a time, until all are made.

    PLAN is the folder that `klamm plan -o` writes, or a file of Kafka's reassignment JSON. All that has to be known is
    kept beside it: run it again to continue after an interruption, with the same options or others. Ctrl-C leaves the
    moves that are in flight; `abort` cancels them. The exit code is 0 only if all moves are made.
    """
    files = PlanFiles(plan)
    try:
        if options.replan:
            # Planning takes a while to import.
            from klamm.cli.rollout.replanning import replanned

            with files.locked():
                if not replanned(cluster, files):
                    return
        content = files.read()
        if not content.file.targets:
            click.echo(NOTHING_TO_DO, err=True)
            return
        with files.locked():
            code = cluster.ask_moves(partial(carry_out, files=files, plan=content, options=options))
    except Taken as taken:
        see = f"see `klamm rollout status {plan}`"
        raise click.ClickException(f"this plan is being carried out by {taken}: {see}") from None
    sys.exit(code)


async def carry_out(
    admin: MoveAdmin, files: PlanFiles, plan: Plan, options: Options, wanted: Phase = Phase.DONE
) -> int:
    """Carry a rollout on, from its start or from where it is; return the exit code."""
    journal, history = Journal(files.journal), History()
    history.take(journal.read())
    if history.state.is_over:
        return tell_end(plan, history, wanted)
    started = await start(admin, plan, options, journal, history)
    if started is None:
        return 0
    history.take(journal.read())
    slowing = Slowing(admin, await find_record(admin, files.recorded), options.throttle)
    runner = Runner(admin, plan, started.moves, options, journal, history, slowing)
    interrupted = await stoppable(runner.carry_out)
    if interrupted and not history.state.is_over:
        _tell_interrupted(files, history)
        return INTERRUPTED
    for broker in slowing.left:
        click.echo(f"broker {broker} keeps the throttle: run this again once it answers", err=True)
    return tell_end(plan, history, wanted)


def _tell_interrupted(files: PlanFiles, history: History) -> None:
    flying = len(history.having(MoveState.IN_FLIGHT, MoveState.GOING_BACK))
    click.echo(
        f"interrupted: {flying:,} moves in flight continue by themselves, no others begin; run it again to continue, "
        f"or `klamm rollout abort {files.path}` to cancel them",
        err=True,
    )


def tell_end(plan: Plan, history: History, wanted: Phase) -> int:
    """Say how a rollout has ended; return the exit code, 0 if it is as wanted."""
    counts = history.counts(len(plan.file.targets))
    phase = history.state.phase
    click.echo(f"rollout: {history.state}: {counts_in_words(counts)}")
    if phase is Phase.ABORTED and wanted is Phase.DONE and counts[MoveState.PENDING]:
        click.echo("an aborted rollout does not begin again: plan again to continue from here", err=True)
    odd = [tp for tp in sorted(history.why) if history.state_of(tp) is not MoveState.BACK]
    for tp in odd[:NAMED]:
        click.echo(f"{tp}: {history.state_of(tp).value}: {history.why[tp]}", err=True)
    if len(odd) > NAMED:
        click.echo(f"and {len(odd) - NAMED:,} more: see `klamm rollout status`", err=True)
    if phase is not wanted:
        return 1
    left = {
        Phase.DONE: sum(counts.values()) - counts[MoveState.DONE],
        Phase.UNDONE: len([tp for tp in history.having(MoveState.DONE) if tp in history.begun]),
    }
    return int(left.get(phase, 0) > 0)
