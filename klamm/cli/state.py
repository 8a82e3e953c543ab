"""`klamm state dump`: export the contents of ZooKeeper to files, which are written completely or not at all."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import click
import orjson

from controller.monitoring.state_dump import Rows, dump_in_parts
from klamm.cli.connect import zookeeper_option
from klamm.cli.output_files import open_output
from klamm.cli.running import run
from transport.store.existing import open_existing
from transport.store.security import security_of_environment


@click.group()
def state() -> None:
    """Export the contents of ZooKeeper."""


@state.command()
@zookeeper_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "parquet"]),
    default="json",
    show_default=True,
    help="A single JSON document; for large clusters, one JSON object per line, or a folder of Parquet.",
)
@click.option("-o", "--output", metavar="PATH", help="The file or, for Parquet, the folder; stdout if not given.")
def dump(zookeeper: str, form: str, output: str | None) -> None:
    """Print brokers and partitions as JSON, read directly from ZooKeeper.

    `klamm plan` reads all of the formats.
    """

    async def work(writer: Writer) -> None:
        async with open_existing(zookeeper, security=security_of_environment()) as store:
            writer.finish(await dump_in_parts(store, writer.partitions))

    # Ctrl-C can end the wait for the reader of a pipe here.
    with open_writer(form, output) as writer:
        run(partial(work, writer))


class Writer(Protocol):
    """Receives a dump, one part at a time."""

    def partitions(self, rows: Rows) -> None:
        """Write some partitions."""
        ...

    def finish(self, others: dict[str, Any]) -> None:
        """Write everything else, after the last partition."""
        ...


class JsonDocument:
    """Writes a single indented document, which is built in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._partitions: Rows = []

    def partitions(self, rows: Rows) -> None:
        """Keep some partitions."""
        self._partitions.extend(rows)

    def finish(self, others: dict[str, Any]) -> None:
        """Write everything, brokers before partitions."""
        head = {name: others[name] for name in ("controller", "brokers")}
        document = {**head, "partitions": self._partitions, **others}
        self._file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


class JsonLines:
    """Writes one object per line: partitions, then brokers, then one with the rest, which begins with `controller`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def partitions(self, rows: Rows) -> None:
        """Write a line for each partition."""
        self._file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)

    def finish(self, others: dict[str, Any]) -> None:
        """Write brokers and the rest."""
        self.partitions(others["brokers"])
        self.partitions([{name: value for name, value in others.items() if name != "brokers"}])


class ParquetFolder:
    """Writes `partitions.parquet`, and `brokers.json` with everything else."""

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        brokers = pa.list_(pa.int32())
        lists = dict.fromkeys(("replicas", "adding_replicas", "removing_replicas", "isr"), brokers)
        epochs = {name: pa.int32() for name in ("leader", "leader_epoch", "controller_epoch")}
        self._schema = pa.schema(
            {"topic": pa.string(), "partition": pa.int32(), **lists, **epochs, "partition_state": pa.string()}
        )
        self._folder = folder
        self._writer = parquet.ParquetWriter(folder / "partitions.parquet", self._schema)

    def partitions(self, rows: Rows) -> None:
        """Write some partitions as row groups."""
        import pyarrow as pa

        self._writer.write_table(pa.Table.from_pylist(rows, self._schema))

    def finish(self, others: dict[str, Any]) -> None:
        """Close the file of partitions and write the other one."""
        self._writer.close()
        (self._folder / "brokers.json").write_bytes(orjson.dumps(others, option=orjson.OPT_INDENT_2))


@contextmanager
def open_writer(form: str, output: str | None) -> Iterator[Writer]:
    """Open the output: a file or stdout for "json" and "jsonl", a new folder for "parquet".

    A file or folder gets its name once it is complete.

    Raises:
        click.ClickException: The format does not suit the output, or the output must not be replaced.
        OSError: The output cannot be written.
    """
    if form == "parquet":
        with _folder(output) as folder:
            yield ParquetFolder(folder)
        return
    writer = JsonDocument if form == "json" else JsonLines
    if output is None:
        yield writer(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with open_output(Path(output)) as file:
        yield writer(file)


@contextmanager
def _folder(output: str | None) -> Iterator[Path]:
    try:
        import pyarrow as pa
    except ImportError:
        raise click.ClickException("Parquet needs PyArrow: pip install 'klamm[plan]'") from None
    del pa
    if output is None:
        raise click.ClickException("a folder of Parquet cannot go to stdout: name one with --output")
    if Path(output).exists():
        raise click.ClickException(f"{output} exists already: name another folder")
    part = Path(f"{output}.part")
    part.mkdir(parents=True)
    try:
        yield part
        part.rename(output)
    finally:
        shutil.rmtree(part, ignore_errors=True)
