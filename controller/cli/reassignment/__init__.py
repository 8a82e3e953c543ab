"""`klamm reassignment`: move replicas, watch, check, and take back."""

from __future__ import annotations

import click

from controller.cli.reassignment.cancel import cancel
from controller.cli.reassignment.execute import execute
from controller.cli.reassignment.looking import describe, list_
from controller.cli.reassignment.verify import verify


@click.group()
def reassignment() -> None:
    """Move replicas between brokers."""


for command in (execute, list_, describe, verify, cancel):
    reassignment.add_command(command)
