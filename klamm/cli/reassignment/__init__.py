"""`klamm reassignment`: move replicas, watch and verify moves, and cancel them."""

from __future__ import annotations

import click

from klamm.cli.reassignment.cancel import cancel
from klamm.cli.reassignment.execute import execute
from klamm.cli.reassignment.verify import verify
from klamm.cli.reassignment.views import describe, list_


@click.group()
def reassignment() -> None:
    """Move replicas between brokers."""


for command in (execute, list_, describe, verify, cancel):
    reassignment.add_command(command)
