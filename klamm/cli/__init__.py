"""The command `klamm`: nouns, then verbs.

Its help loads nothing but click; each noun's module is loaded when it is used.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any, Final

import click

from klamm import interrupts
from klamm.cli.streams import exit_code_of, quiet_end

_GROUPS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Look": {
        "cluster": ("klamm.cli.cluster:cluster", "Describe the cluster as a whole."),
        "top": ("klamm.cli.top:top", "Watch brokers, moves and partitions at risk in the terminal."),
        "log-dirs": ("klamm.cli.log_dirs:log_dirs", "Describe the log directories of brokers."),
        "state": ("klamm.cli.state:state", "Export the state of a cluster."),
    },
    "Change topics and settings": {
        "topic": ("klamm.cli.topics:topic", "Create, list, describe, enlarge and delete topics."),
        "config": ("klamm.cli.configs:config", "Describe and change settings of topics and brokers."),
        "leader": ("klamm.cli.leaders:leader", "Elect leaders."),
    },
    "Move replicas": {
        "plan": ("klamm.cli.planning:plan", "Plan large moves of replicas, in memory or on Spark."),
        "reassignment": ("klamm.cli.reassignment:reassignment", "Move replicas between brokers."),
        "rollout": ("klamm.cli.rollout:rollout", "Carry out a large plan a few moves at a time."),
    },
    "Run": {
        "controller": ("klamm.cli.services:controller", "Run or check a controller, or hand its office over."),
        "broker": ("klamm.cli.services:broker", "Run a broker, or list brokers."),
        "zookeeper": ("klamm.cli.services:zookeeper", "Run a development ZooKeeper."),
    },
    "Test and learn": {
        "demo": ("klamm.cli.demo:demo", "Run a cluster on this machine and move a partition under load."),
        "simulate": ("klamm.cli.simulate:simulate", "Run a scripted cluster on virtual time."),
        "produce": ("klamm.cli.data:produce", "Write lines of standard input as records."),
        "consume": ("klamm.cli.data:consume", "Print records as lines."),
        "completion": ("klamm.cli.completion:completion", "Print a script that completes the command in a shell."),
    },
}
"""The groups of commands in the help; for each command its place, and its line."""

_COMMANDS: Final = {name: command for group in _GROUPS.values() for name, command in group.items()}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def main(self, *args: Any, standalone_mode: bool = True, **more: Any) -> Any:  # noqa: ANN401  as click has it
        """Run the command; with `standalone_mode`, end the process with its exit code."""
        command = partial(super().main, *args, standalone_mode=False, **more)
        if not standalone_mode:
            return command()
        sys.exit(exit_code_of(command))

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Parse the command line, and print help if requested."""
        with quiet_end():
            return super().make_context(*args, **more)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command. Return None if there is no command of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the named command; from then on Ctrl-C interrupts it.

        Raises click.UsageError, with the nearest name, if there is no such command.
        """
        near = [] if args[0] in _COMMANDS else get_close_matches(args[0], _COMMANDS, n=1)
        if near:
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx)
        found = super().resolve_command(ctx, args)
        interrupts.begin_command()
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; Ctrl-C ends it with its exit code, in place of click's "Aborted!"."""
        try:
            with quiet_end():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(interrupts.INTERRUPTED)
        finally:
            interrupts.end_command()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their groups, without importing them."""
        width = max(map(len, _COMMANDS))
        for title, group in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in group.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="klamm")
def main() -> None:
    """Klamm: a cluster controller for partitioned, replicated systems."""
