"""`klamm rollout`: carry out a large plan a few moves at a time, and pause, abort or undo it."""

from __future__ import annotations

import click

from klamm.cli.rollout.controls import abort, pause, remove, resume, set_, undo
from klamm.cli.rollout.listing import list_
from klamm.cli.rollout.run import run
from klamm.cli.rollout.start import start
from klamm.cli.rollout.status import status


@click.group()
def rollout() -> None:
    """Carry out a large plan a few moves at a time."""


for command in (start, run, list_, status, pause, resume, set_, abort, undo, remove):
    rollout.add_command(command)
