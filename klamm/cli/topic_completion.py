"""The names of topics for a shell that completes a command."""

from __future__ import annotations

from typing import Final

import click

from klamm.cli.connect import DEFAULT_BOOTSTRAP, Cluster, network_of

_PATIENCE_SECONDS: Final = 2.0
"""The time that somebody waits for a completion."""


def topics_of(ctx: click.Context) -> list[str]:
    """Return the topics of the cluster that a half-written command names, in order; none if it does not answer."""
    # As long as a command is not complete, its context lacks defaults.
    given = ctx.params
    try:
        network = network_of(given.get("command_config"))
        bootstrap = given.get("bootstrap_server") or DEFAULT_BOOTSTRAP
        cluster = Cluster(bootstrap, given.get("zookeeper"), _PATIENCE_SECONDS, network)
        found = cluster.ask(lambda admin: admin.read_metadata())
    except (click.ClickException, SystemExit):
        return []
    return sorted({state.topic for state in found.partitions})
