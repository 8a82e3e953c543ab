"""`klamm state dump`: export the state of a cluster to files, which are written completely or not at all."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import click
import orjson
import trio

from controller.monitoring.cluster_dump import ClusterDump, dump_cluster
from controller.monitoring.state_dump import HEAD, Rows, dump_in_parts
from klamm.cli.connect import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_ZOOKEEPER,
    READ_SECONDS,
    Cluster,
    live_options,
    zookeeper_option,
)
from klamm.cli.formats import Format, FormatOrPath, warn_of_old
from klamm.cli.output_files import open_output
from klamm.cli.profiles import Place
from klamm.cli.running import is_given, run
from transport import addresses
from transport.network import TcpNetwork
from transport.store.existing import open_existing
from transport.store.security import security_of_environment

_LOOK_SECONDS: Final = 5.0
"""The time after which an address that neither accepts nor refuses counts as one where something listens."""


@click.group()
def state() -> None:
    """Export the state of a cluster."""


@state.command()
@zookeeper_option
@live_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "parquet"]),
    default="json",
    show_default=True,
    help="A single JSON document; for large clusters, one JSON object per line, or a folder of Parquet.",
)
@click.option("--out", metavar="PATH", help="The file or, for Parquet, the folder; stdout if not given.")
@click.option("-o", "--output", type=FormatOrPath(), hidden=True)
def dump(zookeeper: str, form: str, out: str | None, output: str | None, live: Cluster | None) -> None:
    """Print brokers and partitions as JSON, read directly from ZooKeeper.

    With --bootstrap-server they are read from a running cluster, of Klamm's or of Apache Kafka's, with the sizes of
    logs and disks; so they are without options on a host where brokers run and no ZooKeeper does. `klamm plan` reads
    all of the formats.
    """
    place = _place(form, out, output)
    if form == "parquet":
        _new_folder(place)
    if live is None and not _is_named():
        live = _brokers_here()
    if live is not None:
        if is_given("zookeeper"):
            raise click.UsageError("--bootstrap-server and --zookeeper each name a cluster: use only one of them")
        _dump_live(live, form, place)
        return

    async def work(writer: Writer) -> None:
        async with open_existing(zookeeper, security=security_of_environment()) as store:
            writer.finish(await dump_in_parts(store, writer.partitions))

    # Ctrl-C can end the wait for the reader of a pipe here.
    with open_writer(form, place) as writer:
        run(partial(work, writer))


def _is_named() -> bool:
    """Return whether the user has named a ZooKeeper, or a profile that does."""
    return is_given("zookeeper") or click.get_current_context().params["profile"] is not None


def _brokers_here() -> Cluster | None:
    """Return the cluster at the default address of brokers if none is at that of ZooKeeper.

    Raises click.ClickException if nothing listens at either.
    """
    if run(partial(_listens, DEFAULT_ZOOKEEPER)):
        return None
    if not run(partial(_listens, DEFAULT_BOOTSTRAP)):
        raise click.ClickException(
            f"neither a ZooKeeper at {DEFAULT_ZOOKEEPER} nor a broker at {DEFAULT_BOOTSTRAP} listens: name the brokers "
            "with --bootstrap-server, or a ZooKeeper with --zookeeper"
        )
    click.echo(f"no ZooKeeper listens at {DEFAULT_ZOOKEEPER}: reading the cluster at {DEFAULT_BOOTSTRAP}", err=True)
    return Cluster.at(Place(command_config=click.get_current_context().params["command_config"]), READ_SECONDS)


async def _listens(address: str) -> bool:
    with trio.move_on_after(_LOOK_SECONDS):
        try:
            stream = await TcpNetwork().connect(*addresses.parse(address))
        except OSError:
            return False
        await stream.aclose()
    return True


def _place(form: str, out: str | None, output: str | None) -> str | None:
    """Return the file or folder to write; earlier releases took it as -o.

    Raises:
        click.UsageError: -o is a format that a dump does not have.
    """
    if output is None or (isinstance(output, Format) and output == form):
        return out
    if isinstance(output, Format):
        raise click.UsageError(f"-o {output}: give the form of a dump with --format, and a file with --out ./{output}")
    if out is not None:
        raise click.UsageError(f"-o {output}: --out names the place already")
    warn_of_old(f"-o {output}", f"--out {output}")
    return output


def _dump_live(live: Cluster, form: str, out: str | None) -> None:
    with open_writer(form, out, sized=True) as writer:
        found = live.ask(partial(dump_cluster, shared_disks=live.shared_disks, disks_remedy=live.disks_remedy))
        writer.partitions(found.partitions)
        writer.finish(found.others)
    tell_gaps(found)


def tell_gaps(found: ClusterDump) -> None:
    """Say on stderr what a cluster did not tell."""
    for gap in found.gaps:
        click.echo(gap, err=True)


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
        # Planning reads what comes before the partitions first.
        head: dict[str, Any] = {name: others[name] for name in HEAD if name in others}
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
    """Writes `partitions.parquet`, and `brokers.json` with everything else; `sized` partitions have sizes."""

    def __init__(self, folder: Path, *, sized: bool) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        brokers = pa.list_(pa.int32())
        lists = dict.fromkeys(("replicas", "adding_replicas", "removing_replicas", "isr"), brokers)
        epochs = {name: pa.int32() for name in ("leader", "leader_epoch", "controller_epoch")}
        sizes = {"bytes": pa.int64(), "log_dirs": pa.list_(pa.string())} if sized else {}
        names = {"topic": pa.string(), "partition": pa.int32(), "topic_id": pa.string()}
        self._schema = pa.schema({**names, **lists, **epochs, "partition_state": pa.string(), **sizes})
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
def open_writer(form: str, output: str | None, *, sized: bool = False) -> Iterator[Writer]:
    """Open the output: a file or stdout for "json" and "jsonl", a new folder for "parquet".

    The partitions of a `sized` dump have sizes and directories.

    A file or folder gets its name once it is complete.

    Raises:
        click.ClickException: The format does not suit the output, or the output must not be replaced.
        OSError: The output cannot be written.
    """
    if form == "parquet":
        with _folder(output) as folder:
            yield ParquetFolder(folder, sized=sized)
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
    folder = _new_folder(output)
    part = Path(f"{folder}.part")
    part.mkdir(parents=True)
    try:
        yield part
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _new_folder(output: str | None) -> Path:
    """Return the folder that Parquet goes to. Raises click.ClickException if there cannot be one."""
    try:
        import pyarrow as pa
    except ImportError:
        raise click.ClickException("Parquet needs PyArrow: pip install 'klamm[plan]'") from None
    del pa
    if output is None:
        raise click.ClickException("a folder of Parquet cannot go to stdout: name one with --out")
    if Path(output).exists():
        raise click.ClickException(f"{output} exists already: name another folder")
    return Path(output)
