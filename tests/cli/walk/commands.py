"""All commands of `klamm`, and how the walk calls each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from klamm.cli import main

SERVICES: Final = ("broker run", "controller run", "demo", "zookeeper run")
"""Commands that run until they are stopped, and print where they listen: they have no result to format."""

STREAMS: Final = ("completion", "consume", "produce", "state dump")
"""Commands whose output is a stream with a form of its own: a script, records, or the lines of an export."""

FILES: Final = ("plan generate-cluster",)
"""Commands whose result is files."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each command that runs something, with its words."""
    context = click.Context(main, info_name="klamm")
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        yield from _leaves(name, command)


def _leaves(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _leaves(f"{words} {name}", inner)
    else:
        yield words, command


COMMANDS: Final = dict(commands())
FORMATTED: Final = {words: each for words, each in COMMANDS.items() if words not in {*SERVICES, *STREAMS, *FILES}}


def option(command: click.Command, name: str) -> click.Option | None:
    """Return an option of a command by the name of its parameter, None if it has none."""
    found = (each for each in command.params if isinstance(each, click.Option) and each.name == name)
    return next(found, None)
