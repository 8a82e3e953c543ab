"""`klamm completion`: the script with which a shell completes the command."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

_VARIABLE: Final = "_KLAMM_COMPLETE"
"""The environment variable by which the script asks for completions; click takes its name from the command."""


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL: bash, zsh or fish.

    For bash, add this line to ~/.bashrc: eval "$(klamm completion bash)".
    """
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, "klamm", _VARIABLE).source())
