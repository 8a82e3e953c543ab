"""The names of topics for a shell that completes a command."""

from __future__ import annotations

from typing import Final

import click

from klamm.cli.connect import Cluster
from klamm.cli.profiles import Place, settled

_PATIENCE_SECONDS: Final = 2.0
"""The time that somebody waits for a completion."""


def topics_of(ctx: click.Context) -> list[str]:
    """Return the topics of the cluster that a half-written command names, in order; none if it does not answer."""
    # As long as a command is not complete, its context lacks defaults.
    given = ctx.params
    try:
        options = Place(*(given.get(name) for name in ("bootstrap_server", "zookeeper", "command_config")))
        cluster = Cluster.at(settled(given.get("profile"), options, ctx), _PATIENCE_SECONDS)
        found = cluster.ask(lambda admin: admin.read_metadata())
    except (click.ClickException, SystemExit):
        return []
    return sorted({state.topic for state in found.partitions})
