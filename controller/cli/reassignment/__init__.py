"""`klamm reassignment`: move replicas, watch, check, and take back."""

from __future__ import annotations

import click

from controller.cli.reassignment.execute import execute
from controller.cli.reassignment.looking import list_


@click.group()
def reassignment() -> None:
    """Move replicas between brokers."""


for command in (execute, list_):
    reassignment.add_command(command)
