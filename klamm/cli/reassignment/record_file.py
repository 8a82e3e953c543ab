"""The record that `klamm reassignment execute` keeps beside its file while moves are under way.

It has what was there before: the replicas of each partition in their order, and the settings that throttles change. It
is on the disk before anything is changed, so that another process can restore all of it, and is gone once it did.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from attrs import define, frozen

from controller.admin.move_admin import ForeignAdmin, MoveAdmin
from controller.admin.move_record import ListBefore, MoveRecord, RateBefore
from klamm.cli.output_files import is_stream, open_output
from klamm.cli.reassignment.files import FileFault, load_object
from klamm.cli.streams import line_of
from transport.dynamic_configs import parse_replicas, render_replicas
from transport.input_files import Limit, UnreadableFile, read_text
from transport.metadata import TopicPartition

SUFFIX: Final = ".before-execute.json"
_VERSION: Final = 1
_LIMIT: Final = Limit(256, "it is not one")


async def find_record(admin: MoveAdmin, moves: Path) -> RecordFile | None:
    """Return where the record of the moves in a file is, None if the cluster keeps what was before them.

    Raises click.ClickException for a record that cannot be read, or is of another cluster.
    """
    if not isinstance(admin, ForeignAdmin):
        return None
    found = RecordFile(moves, await admin.cluster_id())
    found.read()
    return found


@frozen
class RecordFile:
    """The record of the moves in a file, on the cluster with an id."""

    moves: Path
    cluster_id: str | None = None

    @property
    def path(self) -> Path:
        """Where the record is."""
        return self.moves.with_name(self.moves.name + SUFFIX)

    def read(self) -> MoveRecord | None:
        """Return the record, None if there is none.

        Raises click.ClickException if it cannot be read, or is that of moves on another cluster. Records of earlier
        releases do not name theirs.
        """
        if is_stream(self.moves) or not self.path.exists():
            return None
        try:
            value = load_object(read_text(self.path, _LIMIT).encode())
            self._require_cluster(value.get("cluster_id"))
            return decode(value)
        except UnreadableFile as fault:
            raise click.ClickException(str(fault)) from None
        except (FileFault, KeyError, TypeError, ValueError) as fault:
            raise click.ClickException(f"{self.path} is no record of what was before moves: {fault!s:.200}") from None

    def _require_cluster(self, recorded: str | None) -> None:
        if None not in {recorded, self.cluster_id} and recorded != self.cluster_id:
            raise click.ClickException(
                f"{self.path} is the record of moves on cluster {recorded}, and this is cluster {self.cluster_id}: "
                f"name that one with --bootstrap-server, or give a copy of {self.moves} another name"
            )

    def write(self, record: MoveRecord) -> None:
        """Replace the record, and return when it is on the disk. Raises OSError."""
        if is_stream(self.moves):
            raise OSError(f"{self.moves} is not a file, beside which there could be one")
        with open_output(self.path) as file:
            file.write(encode(record, self.cluster_id))
            file.flush()
            os.fsync(file.fileno())
        self._sync_folder()

    def replace(self, record: MoveRecord, left: MoveRecord | None) -> None:
        """Bring the record up to date; remove it if nothing is left to be restored. Raises OSError."""
        if left is None:
            self.path.unlink(missing_ok=True)
        elif left != record:
            self.write(left)

    def _sync_folder(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@define
class Keeping:
    """The record of the moves in a file, as it is kept while they are begun.

    Without a place for it, moves can still begin, unless a throttle is wanted.
    """

    file: RecordFile
    record: MoveRecord
    needs_place: bool
    is_kept: bool = False

    def keep(self, record: MoveRecord) -> None:
        """Put the record on the disk. Raises click.ClickException if it has to be there and cannot."""
        try:
            self.update(record)
        except OSError as error:
            if self.needs_place:
                text = f"nothing was begun, as what is there before it could not be recorded: {line_of(error)}"
                raise click.ClickException(text) from None
            click.echo(
                f"a cancel will not restore the order of replicas, as it is not recorded: {line_of(error)}", err=True
            )

    def update(self, record: MoveRecord) -> None:
        """Put the record on the disk. Raises OSError."""
        self.record = record
        self.file.write(record)
        self.is_kept = True


def encode(record: MoveRecord, cluster_id: str | None) -> bytes:
    """Return a record of moves on a cluster as JSON."""
    replicas = [{"topic": tp.topic, "partition": tp.partition, "replicas": of} for tp, of in record.replicas.items()]
    lists = [
        {"topic": topic, "setting": name, "before": one.before, "added": render_replicas(one.added)}
        for (topic, name), one in record.lists.items()
    ]
    rates = [
        {"broker": broker, "setting": name, "before": one.before, "given": one.given}
        for (broker, name), one in record.rates.items()
    ]
    whole = {
        "version": _VERSION,
        "cluster_id": cluster_id,
        "partitions": replicas,
        "throttled_replicas": lists,
        "throttled_rates": rates,
    }
    return f"{json.dumps(whole, indent=1)}\n".encode()


def decode(value: Mapping[str, Any]) -> MoveRecord:
    """Return the record in JSON. Raises FileFault, KeyError, TypeError or ValueError for anything else."""
    if value["version"] != _VERSION:
        raise FileFault(f"version must be {_VERSION}, is {value['version']!r}")
    replicas = {TopicPartition(one["topic"], int(one["partition"])): _ids(one) for one in value["partitions"]}
    lists = {(one["topic"], one["setting"]): _list(one) for one in value["throttled_replicas"]}
    rates = {(int(one["broker"]), one["setting"]): _rate(one) for one in value["throttled_rates"]}
    return MoveRecord(replicas, lists, rates)


def _ids(one: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(map(int, one["replicas"]))


def _list(one: Mapping[str, Any]) -> ListBefore:
    return ListBefore(_text(one["before"]), parse_replicas(one["added"]) or frozenset())


def _rate(one: Mapping[str, Any]) -> RateBefore:
    return RateBefore(_text(one["before"]), str(one["given"]))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
