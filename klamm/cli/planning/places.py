"""The destination of a plan's files: a folder, one file, or stdout. All files are written, or none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from klamm.cli.output_files import check_file, check_parent, is_stream, write_output
from spark_bridge.inputs.sources import Source, Url, source_of

_HEAD: Final = b'{"version":1,"partitions":['
_TAIL: Final = b"]}\n"


def check_output(output: str) -> None:
    """Check that the plan can be written to `output`.

    Raises:
        click.ClickException: It cannot.
    """
    path = Path(output)
    if isinstance(source_of(output), Url):
        if _is_one_file(path):
            raise click.ClickException(f"{output} is a single file, but Spark writes a plan as several: name a folder")
    elif _is_one_file(path):
        check_file(path)
    elif path.is_dir():
        if any(path.iterdir()):
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
    """Put a plan's files at their destination.

    Raises:
        OSError: They cannot be written.
    """
    if output is None:
        for piece in _joined(folder):
            click.echo(piece, nl=False)
    elif _is_one_file(Path(output)):
        write_output(Path(output), _joined(folder))
    else:
        folder.replace(Path(output).resolve())


def _joined(folder: Path) -> Iterator[bytes]:
    """Yield the plan's JSON as one document, joined from files that begin and end alike."""
    yield _HEAD
    end = b""
    for file in sorted(folder.glob("plan*.json")):
        yield b"," if end else b""
        yield file.read_bytes().removeprefix(_HEAD).removesuffix(b"\n" + _TAIL)
        end = b"\n"
    yield end + _TAIL


def _is_one_file(path: Path) -> bool:
    return path.suffix == ".json" or is_stream(path)
