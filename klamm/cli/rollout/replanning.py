"""`--replan`: a plan that is out of date, or whose rollout was aborted, is made again from the state of now.

The new plan takes the place of the old one, whose folder is kept beside it with the journal of its rollout: what that
has done can still be undone.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import click

from controller.admin.move_admin import MoveAdmin
from controller.rollout.states import Phase
from klamm.cli.connect import Cluster
from klamm.cli.formats import View
from klamm.cli.plan_report import print_report
from klamm.cli.planning.made_from import MadeFrom
from klamm.cli.planning.making import plan_into
from klamm.cli.planning.places import workplace
from klamm.cli.reassignment import preview
from klamm.cli.rollout.checking import changed_in, compared
from klamm.cli.rollout.documents import ChangedRollout
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.plan_files import Plan, PlanFiles
from klamm.cli.streams import line_of


def replanned(cluster: Cluster, files: PlanFiles, *, other_cluster: bool, partial: bool) -> bool:
    """Plan again if that is necessary; return whether there is anything to move.

    Raises click.ClickException, also if topics are hidden unless a `partial` plan is accepted.
    """
    made_from = MadeFrom.read(files.path)
    if not _is_needed(cluster, files, other_cluster=other_cluster):
        return True
    folder = files.path.resolve()
    with workplace(str(folder)) as place:
        new = place / "plan"
        summary = plan_into(new, place, made_from.kind, made_from.options_on(cluster, partial=partial))
        print_report(summary, sys.stderr)
        if not summary.changed:
            return False
        made_from.write(new)
        old = _free_name(folder)
        try:
            folder.replace(old)
            new.replace(folder)
        except OSError as error:
            raise click.ClickException(f"the new plan cannot be put in place: {line_of(error)}") from None
    click.echo(f"planned again: the plan of before is in {old}", err=True)
    return True


def nothing_left(name: str) -> View:
    """Return the view if nothing is left to be moved."""
    return View(ChangedRollout(name, "nothing_to_move"), ["planned again: nothing is left to be moved"])


def _is_needed(cluster: Cluster, files: PlanFiles, *, other_cluster: bool) -> bool:
    """Return whether a plan cannot be carried out as it is. A rollout that has begun continues with its plan."""
    history = History()
    history.take(Journal(files.journal).read())
    if history.digest is not None:
        return history.state.phase is Phase.ABORTED
    return cluster.ask_moves(functools.partial(_has_changed, plan=files.read(), other_cluster=other_cluster))


async def _has_changed(admin: MoveAdmin, plan: Plan, *, other_cluster: bool) -> bool:
    if not plan.file.targets:
        return True  # it may be different by now
    metadata = await admin.read_metadata(sorted({tp.topic for tp in plan.file.targets}))
    ids = await compared(admin, metadata, plan.file, other_cluster=other_cluster)
    return bool(changed_in(preview.states_of(metadata), plan.file, ids.created_again))


def _free_name(folder: Path) -> Path:
    """Return a name beside a folder that nothing has."""
    number = 1
    while (found := folder.with_name(f"{folder.name}.replaced-{number}")).exists():
        number += 1
    return found
