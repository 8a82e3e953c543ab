"""Copies of inputs that are pipes: planning reads its inputs more than once, and in another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from klamm.cli.output_files import is_stream
from klamm.cli.planning.options import Options
from spark_bridge.inputs.sources import Url, source_of
from transport.input_files import Limit, UnreadableFile, read_pieces

PIPE: Final = Limit(16 * 1024, "give it as a file")
DEVICE: Final = Limit(16, "name a file or a pipe")
"""A device may never end."""


@contextmanager
def without_pipes(options: Options, place: Path) -> Iterator[Options]:
    """Yield options whose inputs are all files: the contents of pipes are copied to a folder.

    Raises:
        click.ClickException: An input cannot be read. Errors of the block name inputs as the user gave them.
    """
    names: dict[str, str] = {}

    def kept(name: str) -> str:
        path = source_of(name)
        if isinstance(path, Url) or not path.exists() or not is_stream(path):
            return name
        limit = PIPE if path.is_fifo() or path.is_socket() else DEVICE
        copy = place / f"input-{len(names)}"
        try:
            with copy.open("wb") as file:
                file.writelines(read_pieces(path, limit))
        except UnreadableFile as fault:
            raise click.ClickException(str(fault)) from None
        names[str(copy)] = name
        return str(copy)

    table = options["brokers_table"]
    files = Options(
        snapshot=kept(options["snapshot"]),
        loads=tuple(map(kept, options["loads"])),
        brokers_table=None if table is None else kept(table),
    )
    try:
        yield options | files
    except click.ClickException as error:
        text = error.message
        for copy, name in names.items():
            text = text.replace(copy, name)
        raise click.ClickException(text) from None
