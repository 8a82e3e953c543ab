"""The destination of a plan's files: a folder, one file, or stdout. All files are written, or none."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from klamm.cli.names import NOTHING_TO_CHANGE
from klamm.cli.output_files import check_file, check_parent, is_stream, write_output
from klamm.cli.planning.made_from import MADE_FROM
from spark_bridge.inputs.sources import Source, Url, source_of

_BEGINS: Final = b'"partitions":['
_TAIL: Final = b"]}\n"
_PLAN: Final = "plan.json"
_NOTHING: Final = b'{"version":1,"partitions":[],"%s":true}\n' % NOTHING_TO_CHANGE.encode()
"""The plan that changes nothing."""

_BESIDE: Final = re.compile(r"plan(-\d+)*\.parquet")
"""The other files of such a plan, apart from what it was made from."""


def check_output(output: str) -> None:
    """Check that the plan can be written to `output`.

    Raises:
        click.UsageError: It cannot, as Spark writes no such place.
        click.ClickException: It cannot, as the folder and its files are now.
    """
    path = Path(output)
    if isinstance(source_of(output), Url):
        if _is_one_file(path):
            raise click.UsageError(f"{output} is a single file, but Spark writes a plan as several: name a folder")
    elif _is_one_file(path):
        check_file(path)
    elif path.is_dir():
        if any(path.iterdir()) and not _changes_nothing(path):
            raise click.ClickException(f"{output} is not empty: name another folder for the plan, or empty this one")
    elif path.exists():
        raise click.ClickException(f"{output} is a file: name a folder for the plan, or a file that ends in .json")
    else:
        check_parent(path)


@contextmanager
def workplace(output: str | None) -> Iterator[Path]:
    """Yield a temporary folder to plan in, next to the destination, which workers can reach as well."""
    if output is None or isinstance(source_of(output), Url) or is_stream(Path(output)):
        with TemporaryDirectory(prefix="klamm-plan-") as name:
            yield Path(name)
        return
    path = Path(output).resolve()
    folder = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as error:
        raise click.ClickException(f"{folder}: {error.strerror}") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def plan_folder(output: str | None, place: Path) -> Source:
    """Return the folder that planning writes to: in the workplace, or the output if only Spark can reach that."""
    target = None if output is None else source_of(output)
    return target if isinstance(target, Url) else place / "plan"


def publish(folder: Path, output: str | None) -> None:
    """Put a plan's files at their destination, where they may replace those of a plan that changes nothing.

    Raises:
        OSError: They cannot be written.
    """
    if output is None:
        for piece in _joined(folder):
            click.echo(piece, nl=False)
    elif _is_one_file(Path(output)):
        write_output(Path(output), _joined(folder))
    else:
        if not any(folder.glob("plan*.json")):
            (folder / _PLAN).write_bytes(_NOTHING)
        target = Path(output).resolve()
        if target.is_dir() and _changes_nothing(target):
            # Out of the way, into the folder that is removed in the end.
            target.replace(folder.with_name("replaced"))
        folder.replace(target)


def _changes_nothing(folder: Path) -> bool:
    """Return whether a folder has a plan that changes nothing, and nothing else."""
    plan = folder / _PLAN
    others = {path.name for path in folder.iterdir()} - {_PLAN, MADE_FROM}
    is_plan = plan.is_file() and plan.stat().st_size == len(_NOTHING) and plan.read_bytes() == _NOTHING
    return is_plan and all(map(_BESIDE.fullmatch, others))


def _joined(folder: Path) -> Iterator[bytes]:
    """Yield the plan's JSON as one document, joined from files that begin and end alike."""
    files = sorted(folder.glob("plan*.json"))
    if not files:
        yield _NOTHING
        return
    between = b""
    for file in files:
        # The head may have the id of the cluster; its quotes are escaped, so this is where the list begins.
        head, begins, entries = file.read_bytes().partition(_BEGINS)
        yield between or head + begins
        yield entries.removesuffix(b"\n" + _TAIL)
        between = b","
    yield b"\n" + _TAIL


def _is_one_file(path: Path) -> bool:
    return path.suffix == ".json" or is_stream(path)
