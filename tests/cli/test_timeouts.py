"""`--timeout` of every command: a number of seconds that it is possible to wait."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from klamm.cli import main

ABSURD = ("inf", "-inf", "nan", "-1", "0", "1e400", "1e300", "2147484", "soon", "")


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, ...]]:
    """Yield the names of each command that has a timeout."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        elif command is not None and any("--timeout" in param.opts for param in command.params):
            yield (*names, name)


WITH_TIMEOUT = tuple(commands(main))


def test_the_list_is_not_empty() -> None:
    assert {("reassignment", "list"), ("produce",), ("plan", "rebalance")} <= set(WITH_TIMEOUT)


@pytest.mark.parametrize("command", WITH_TIMEOUT, ids=" ".join)
def test_a_timeout_that_nobody_can_wait_for_is_refused(command: tuple[str, ...]) -> None:
    """It is refused before anything else that may be wrong, such as arguments that are missing."""
    for seconds in ABSURD:
        done = CliRunner().invoke(main, [*command, f"--timeout={seconds}"])
        *_, line = done.output.splitlines()
        assert done.exit_code == 2, (seconds, done.output)
        assert line.startswith("Error: Invalid value for '--timeout': "), (seconds, line)
