"""`klamm reassignment list` and `describe`: the moves in progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final

import click
from attrs import frozen

from controller.admin.moves import waits_for
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.names import PARTITION, TOPIC
from klamm.cli.output import print_document, print_table
from klamm.cli.units import duration, moment, rate, size
from transport.host import Host
from transport.messages import UNKNOWN, UNTHROTTLED, ReassignmentDescription, ReplicaProgress
from transport.metadata import TopicPartition

_LIST_FIELDS: Final = (
    "topic", "partition", "replicas", "adding_replicas", "removing_replicas", "leader", "isr", "start_time_ms",
)  # fmt: skip
_DESCRIBE_FIELDS: Final = (*_LIST_FIELDS, "new_replicas", "waits_for", "rate", "eta_ms", "stalled_since_ms")
_PROGRESS_FIELDS: Final = ("broker", "in_sync", "log_bytes", "leader_bytes", "log_end_offset", "offset_lag")
_PROGRESS_COLUMNS: Final = ("broker", "in sync", "has", "of", "records behind", "throttle")


@frozen
class Naming:
    """The moves that a command applies to: those of all topics, of one, or of one of its partitions."""

    topic: str | None
    partition: int | None

    @property
    def one(self) -> TopicPartition | None:
        """The partition, if one is named."""
        return None if self.topic is None or self.partition is None else TopicPartition(self.topic, self.partition)

    @property
    def of_what(self) -> str:
        """The topic or partition, as part of a sentence; empty if all are meant."""
        return "" if self.topic is None else f" of {self.one or self.topic}"

    def has(self, move: ReassignmentDescription) -> bool:
        """Return whether the command applies to a move."""
        return self.topic in {None, move.topic} and self.partition in {None, move.partition}


def naming_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command --topic and --partition, passed to it as `naming`."""

    @wraps(command)
    def with_naming(*, topic: str | None, partition: int | None, **options: object) -> None:
        if partition is not None and topic is None:
            raise click.UsageError("--partition needs the topic: name it with --topic")
        command(naming=Naming(topic, partition), **options)

    one = click.option("--partition", type=PARTITION, help="Only this partition of --topic.")
    return click.option("--topic", type=TOPIC, help="Only partitions of this topic.")(one(with_naming))


@click.command(name="list")
@output_option
@cluster_options
def list_(cluster: Cluster, output: str) -> None:
    """List the moves in progress."""
    found = _in_progress(cluster, Naming(None, None))
    if output != "table":
        print_document([{name: getattr(move, name) for name in _LIST_FIELDS} for move in found], output)
    elif not found:
        click.echo("no reassignment is in progress")
    else:
        rows = [
            (str(m.tp), m.replicas, m.adding_replicas, m.removing_replicas, m.isr, moment(m.start_time_ms))
            for m in found
        ]
        print_table(["partition", "replicas", "adding", "removing", "isr", "started"], rows)


@click.command()
@naming_options
@output_option
@cluster_options
def describe(cluster: Cluster, naming: Naming, output: str) -> None:
    """Show the progress of moves. This includes what they wait for, and whether they are stalled."""
    found = _in_progress(cluster, naming)
    if naming.topic is not None and not found:
        raise click.ClickException(f"no reassignment{naming.of_what} is in progress: see `klamm reassignment list`")
    if output != "table":
        print_document([_document(move) for move in found], output)
    elif not found:
        click.echo("no reassignment is in progress")
    else:
        _print_descriptions(found, Host().now_ms())


def _in_progress(cluster: Cluster, naming: Naming) -> list[ReassignmentDescription]:
    found = cluster.ask_moves(lambda admin: admin.describe_reassignments())
    return sorted(filter(naming.has, found.values()), key=lambda move: move.tp)


def _document(move: ReassignmentDescription) -> dict[str, Any]:
    """Return a description with null for unknown values and for a throttle that is not set."""
    fields = {name: _known(getattr(move, name)) for name in _DESCRIBE_FIELDS}
    progress = [
        {name: _known(getattr(item, name)) for name in _PROGRESS_FIELDS} | {"throttle": _throttle(item.throttle)}
        for item in move.progress
    ]
    return fields | {"leader": move.leader, "leader_throttle": _throttle(move.leader_throttle), "progress": progress}


def _known(value: object) -> object:
    return None if value == UNKNOWN else value


def _throttle(bytes_per_second: int) -> int | None:
    return None if bytes_per_second == UNTHROTTLED else bytes_per_second


def _print_descriptions(found: Sequence[ReassignmentDescription], now_ms: int) -> None:
    for number, move in enumerate(found):
        if number:
            click.echo()
        print_table([str(move.tp), ""], _facts(move, now_ms))
        click.echo()
        print_table(_PROGRESS_COLUMNS, map(_progress_row, move.progress), numbers=("has", "of", "records behind"))


def _facts(move: ReassignmentDescription, now_ms: int) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [
        ("replicas", move.replicas),
        ("new replicas", move.new_replicas),
        ("adding", move.adding_replicas),
        ("removing", move.removing_replicas),
        ("isr", move.isr),
        ("leader", f"{_broker(move.leader)}, {rate(move.leader_throttle)}"),
        ("started", _ago(move.start_time_ms, now_ms)),
        ("waits for", waits_for(move)),
    ]
    if move.stalled_since_ms != UNKNOWN:
        facts.append(("stalled since", _ago(move.stalled_since_ms, now_ms)))
    return [*facts, ("rate", rate(move.rate)), ("left", duration(move.eta_ms))]


def _broker(broker_id: int) -> str:
    return "none" if broker_id < 0 else str(broker_id)


def _ago(time_ms: int, now_ms: int) -> str:
    return moment(time_ms) if time_ms == UNKNOWN else f"{moment(time_ms)}, {duration(max(now_ms - time_ms, 0))} ago"


def _progress_row(item: ReplicaProgress) -> tuple[object, ...]:
    lag = "unknown" if item.offset_lag == UNKNOWN else f"{item.offset_lag:,}"
    in_sync = "yes" if item.in_sync else "no"
    return item.broker, in_sync, size(item.log_bytes), size(item.leader_bytes), lag, rate(item.throttle)
