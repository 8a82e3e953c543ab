"""The names of topics and rollouts for a shell that completes a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import click

from controller.admin.client import AdminClient
from controller.admin.move_admin import MoveAdmin
from klamm.cli.connect import Cluster
from klamm.cli.profiles import Place, settled

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 2.0
"""The time that somebody waits for a completion."""


def topics_of(ctx: click.Context) -> list[str]:
    """Return the topics of the cluster that a half-written command names, in order; none if it does not answer."""
    found = _answer(ctx, lambda cluster: cluster.ask(lambda admin: admin.read_metadata()))
    return [] if found is None else sorted({state.topic for state in found.partitions})


def rollouts_of(ctx: click.Context) -> list[str]:
    """Return the rollouts of the controller, in its order; none if it does not answer, or has none."""

    async def names(admin: MoveAdmin) -> list[str]:
        return [told.name for told in await admin.describe_rollouts()] if isinstance(admin, AdminClient) else []

    return _answer(ctx, lambda cluster: cluster.ask_moves(names)) or []


def _answer(ctx: click.Context, question: Callable[[Cluster], T]) -> T | None:
    # As long as a command is not complete, its context lacks defaults.
    given = ctx.params
    try:
        options = Place(*(given.get(name) for name in ("bootstrap_server", "zookeeper", "command_config")))
        return question(Cluster.at(settled(given.get("profile"), options, ctx), _PATIENCE_SECONDS))
    except (click.ClickException, SystemExit):
        return None
