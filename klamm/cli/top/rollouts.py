"""The rollouts that `klamm top` shows from outside: those of the plans that it is given, by their journals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from attrs import frozen

from klamm.cli.rollout.plan_files import PlanFiles
from klamm.cli.rollout.report import Report
from klamm.cli.rollout.status import JournalView, NotBegun
from klamm.cli.streams import line_of


@frozen
class Untold:
    """A plan whose rollout cannot be told, and why."""

    name: str
    why: str


Rollout = Report | Untold


def followed(paths: Sequence[Path]) -> list[JournalView]:
    """Return what follows the rollouts of plans, begun or not. Raises click.ClickException if one is no plan."""
    plans = [PlanFiles(path) for path in paths]
    for plan in plans:
        plan.read()
    return list(map(JournalView, plans))


def seen(views: Sequence[JournalView]) -> tuple[Rollout, ...]:
    """Return the rollouts as they are now; each reads what is new in its journal."""
    return tuple(map(_seen, views))


def _seen(view: JournalView) -> Rollout:
    name = str(view.files.path)
    try:
        return view.look()
    except NotBegun:
        return Untold(name, "not begun")
    except click.ClickException as error:
        return Untold(name, error.message)
    except OSError as error:
        return Untold(name, line_of(error))
