"""`klamm log-dirs`: the log directories of brokers, as Kafka's kafka-log-dirs shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import click
from attrs import frozen
from msgspec import Struct

from controller.admin.broker_log_dirs import BrokerLogDirs, all_denied
from controller.admin.move_admin import MoveAdmin
from controller.admin.visibility import WHOLE
from klamm.cli.completions import broker_lists, topic_lists
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.formats import Note, Table, View, known, output_options
from klamm.cli.names import broker_ids, check_text
from klamm.cli.topic_filters import has_patterns, matching, require_topics
from klamm.cli.units import size
from klamm.cli.visibility import note, require_any
from transport.acls import Operation, needs
from transport.errors import ErrorCode, reason_of
from transport.kafka.volume import Volume
from transport.messages import LogDir, LogDirReplica

_DIRECTORY_COLUMNS: Final = ("broker", "directory", "logs", "size", "future logs", "total", "free", "error")
_LOG_COLUMNS: Final = ("broker", "directory", "topic", "partition", "size", "lag", "future")


@click.group(name="log-dirs")
def log_dirs() -> None:
    """Describe the log directories of brokers."""


class LogRow(Struct):
    """A log in a directory. A future log is on its way there from another directory of the broker."""

    topic: str
    partition: int
    bytes: int | None
    offset_lag: int | None
    is_future: bool


class Directory(Struct):
    """A log directory, with the size of its disk where brokers give it; `error` is null for one that works."""

    path: str
    error: str | None
    total_bytes: int | None
    usable_bytes: int | None
    logs: list[LogRow]


class BrokerDirectories(Struct):
    """The log directories of a broker; `fault` says why one that did not answer has none.

    `partial` says what the answer lacks because topics are hidden from the user; null for a complete one.
    """

    broker: int
    fault: str | None
    log_dirs: list[Directory]
    partial: str | None = None


@log_dirs.command()
@click.option(
    "--broker-list",
    metavar="1,2",
    shell_complete=broker_lists,
    help="Only these brokers; without it, all that are alive.",
)
@click.option(
    "--topic-list",
    metavar="NAMES",
    shell_complete=topic_lists,
    help="The logs of these topics, such as orders,clicks* (names or patterns), one by one.",
)
@output_options(list[BrokerDirectories], watch=True)
@cluster_options
def describe(cluster: Cluster, broker_list: str | None, topic_list: str | None) -> View:
    """Show the log directories of brokers, or logs of topics.

    A future log is on its way to its directory from another one of the same broker. Only Kafka's brokers tell of future
    logs and disks. JSON and YAML have each log.
    """
    ids, topics = _ids(broker_list), _topics(topic_list)
    found, partial = cluster.ask_moves(lambda admin: _read(admin, ids, topics))
    parts: list[Table | Note] = []
    if any(told.log_dirs for told in found.values()):
        by_log = topics is not None
        columns, rows = (_LOG_COLUMNS, _log_rows(found)) if by_log else (_DIRECTORY_COLUMNS, _directory_rows(found))
        parts.append(Table(columns, list(rows)))
    silent = {broker: told.fault for broker, told in found.items() if told.fault}
    if all_denied(found):
        # The same is missing at all brokers: it is said once.
        parts.append(Note(f"no broker describes its log directories to us: {needs(Operation.DESCRIBE)}", always=True))
    else:
        parts += [
            Note(fault if fault.startswith(f"broker {id_}") else f"broker {id_}: {fault}")
            for id_, fault in silent.items()
        ]
    documents = [_document(broker, told, partial) for broker, told in found.items()]
    return View(documents, [*parts, *note(partial)], int(bool(silent)))


def _ids(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    ids = broker_ids(text)
    if ids is None:
        raise click.BadParameter(f"{text!r} is not a list of broker ids such as 1,2", param_hint="--broker-list")
    return tuple(sorted(set(ids)))


def _topics(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    check_text(text, "--topic-list")
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if "" in names:
        raise click.BadParameter(f"{text!r} is not a list of topics such as orders,clicks", param_hint="--topic-list")
    return names


async def _read(
    admin: MoveAdmin, ids: Sequence[int] | None, topics: Sequence[str] | None
) -> tuple[dict[int, BrokerLogDirs], str | None]:
    """Ask brokers for their logs, and return them with a line that says what is hidden.

    Raises click.ClickException if there is no topic of a name.
    """
    are_patterns = has_patterns(topics or ())
    known = await admin.read_metadata(None if are_patterns else topics or ())
    # Topics matter to patterns only: brokers show their logs, and named topics, to those who may see them, or refuse.
    visibility = await admin.visibility() if are_patterns else WHOLE
    require_any(visibility, known.partitions)
    require_topics(topics or (), known.partitions)
    wanted = [broker.id for broker in known.brokers] if ids is None else ids
    partitions = None if topics is None else sorted(state.tp for state in matching(topics, known.partitions))
    return await admin.describe_log_dirs(wanted, partitions), visibility.lacking_topics


@frozen
class _Log:
    """A log in a directory."""

    told: LogDirReplica
    is_future: bool


def _logs(told: BrokerLogDirs, one: LogDir) -> list[_Log]:
    """Return the logs of a directory in order, those that are on their way to it after those that are there."""
    futures = told.futures.get(one.path, ())
    logs = [*(_Log(log, is_future=False) for log in one.replicas), *(_Log(log, is_future=True) for log in futures)]
    return sorted(logs, key=lambda log: (log.told.tp, log.is_future))


def _directory_rows(found: Mapping[int, BrokerLogDirs]) -> Iterator[tuple[object, ...]]:
    for broker, told in found.items():
        for one in told.log_dirs:
            volume, error = told.volumes.get(one.path, Volume()), _fault(one)
            used = size(sum(log.size for log in one.replicas)) if error is None else None
            disk = (size(volume.total), size(volume.usable))
            yield broker, one.path, len(one.replicas), used, len(told.futures.get(one.path, ())), *disk, error


def _log_rows(found: Mapping[int, BrokerLogDirs]) -> Iterator[tuple[object, ...]]:
    for broker, told in found.items():
        for one in told.log_dirs:
            for log in _logs(told, one):
                entry, is_future = log.told, "yes" if log.is_future else "no"
                yield broker, one.path, *entry.tp, size(entry.size), known(entry.offset_lag), is_future


def _document(broker: int, told: BrokerLogDirs, partial: str | None) -> BrokerDirectories:
    dirs = [_directory(one, told.volumes.get(one.path, Volume()), _logs(told, one)) for one in told.log_dirs]
    return BrokerDirectories(broker, told.fault or None, dirs, partial)


def _directory(one: LogDir, volume: Volume, logs: Iterable[_Log]) -> Directory:
    rows = [
        LogRow(log.told.topic, log.told.partition, known(log.told.size), known(log.told.offset_lag), log.is_future)
        for log in logs
    ]
    return Directory(one.path, _error(one), known(volume.total), known(volume.usable), rows)


def _error(one: LogDir) -> str | None:
    return None if one.error is ErrorCode.NONE else one.error.name


def _fault(one: LogDir) -> str | None:
    """Return the error of a directory in words."""
    return None if one.error is ErrorCode.NONE else reason_of(one.error)
