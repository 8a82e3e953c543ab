"""The rollback of an execution: a file with the replicas of before, or the same on stdout."""

from __future__ import annotations

from pathlib import Path

import click

from klamm.cli.output_files import is_stream, write_output
from klamm.cli.reassignment.files import MoveFile, encode_targets, read_document


def write_rollback(rollback: MoveFile, file: Path | None, *, to_stderr: bool) -> None:
    """Write a rollback to a file, or print it if there is none.

    Raises:
        OSError: It cannot be written.
        click.ClickException: The file may be the rollback of an earlier move.
    """
    text = encode_targets(rollback.targets, rollback.log_dirs, rollback.ids)
    if file is None:
        click.echo(f"Current partition replica assignment\n\n{text}\n", err=to_stderr)
        click.echo("Save this to use as the --reassignment-json-file option during rollback", err=to_stderr)
    elif not file.exists() or is_stream(file):
        write_output(file, [f"{text}\n".encode()])
    elif not _holds(file, rollback):
        raise click.ClickException(
            f"{file} exists, and may be the rollback of an earlier move: name another with --rollback-json-file"
        )


def _holds(file: Path, rollback: MoveFile) -> bool:
    """Return whether a file is the same rollback. One of an earlier release does not have the ids."""
    try:
        there = read_document(file)
        there.ids.together(rollback.ids)
    except (click.ClickException, ValueError):
        return False
    return (there.targets, there.log_dirs) == (rollback.targets, rollback.log_dirs)
