"""All commands of `klamm`, by what they do: each is in exactly one of the lists, which are complete.

A new command that is in none of them fails the walk; in a list it has to follow the conventions of that list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import click

from klamm.cli import main

CHANGING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "config alter": "",
        "controller release": "",
        "controller take-over": "",
        "leader elect": "",
        "produce": "only a broker that takes a record knows whether it can",
        "reassignment cancel": "",
        "reassignment execute": "",
        "reassignment verify": "",
        "rollout abort": "",
        "rollout pause": "",
        "rollout remove": "",
        "rollout resume": "",
        "rollout run": "",
        "rollout set": "",
        "rollout start": "",
        "rollout undo": "",
        "topic add-partitions": "",
        "topic create": "",
        "topic delete": "",
    }
)
"""Commands that change a cluster; for one without --dry-run, the reason."""

AT_TIMES: Final = frozenset({"reassignment verify"})
"""Those that often find nothing to change, and name the cluster only when they do."""

LOOKING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "broker list": "",
        "cluster describe": "",
        "config describe": "",
        "consume": "",
        "controller check": "",
        "log-dirs describe": "",
        "plan add-brokers": "",
        "plan leaders": "",
        "plan rebalance": "",
        "plan relieve": "",
        "plan remove-brokers": "",
        "plan repair-racks": "",
        "plan set-replication-factor": "",
        "reassignment describe": "",
        "reassignment list": "",
        "rollout list": "",
        "rollout status": "",
        "state dump": "it has the forms of --format",
        "top": "",
        "topic describe": "",
        "topic list": "",
    }
)
"""Commands that read a cluster and change nothing; for one without the formats of output, the reason."""

SERVICES: Final = ("broker run", "controller run", "demo", "zookeeper run")
"""Commands that run until they are stopped, and print where they listen: they have no result to format."""

LOCAL: Final[Mapping[str, str]] = MappingProxyType(
    {"completion": "it prints a script for a shell", "plan generate-cluster": "", "simulate": ""}
)
"""Commands that work without a cluster; for one without the formats of output, the reason."""

FILES: Final = ("plan generate-cluster",)
"""Commands with files as their result: they print no tables."""

JUDGES: Final = ("controller check",)
"""Commands that look and say by their exit code whether all is well."""


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
FORMATTED: Final = {
    words: each
    for words, each in COMMANDS.items()
    if words not in SERVICES and not LOOKING.get(words) and not LOCAL.get(words)
}
"""Commands that print their result in every format."""


def option(command: click.Command, name: str) -> click.Option | None:
    """Return an option of a command by the name of its parameter, None if it has none."""
    found = (each for each in command.params if isinstance(each, click.Option) and each.name == name)
    return next(found, None)
