"""`klamm leader elect`: preferred and unclean elections, with the options of Kafka's kafka-leader-election.

In addition to Kafka, a request may give a new order of the replicas, leader first, which chooses the leader without a
move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Final, Literal, TypeVar

import click
from attrs import evolve, field, frozen
from msgspec import Struct

from controller.admin.election_refusals import failure, refusals
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.decorators import with_options
from klamm.cli.formats import (
    DRY_RUN,
    Format,
    Note,
    Table,
    View,
    confirm,
    dry_run_option,
    output_options,
    yes_option,
)
from klamm.cli.names import PARTITION, TOPIC, broker_ids, is_broker_id
from klamm.cli.reassignment.files import LIMIT, FileFault, load_object
from transport.errors import ErrorCode, reason_of
from transport.input_files import UnreadableFile, read_text
from transport.messages import ElectionType, MetadataResponse, PartitionError, PartitionState
from transport.metadata import LEADER_DURING_DELETE, TopicPartition
from transport.settings import INT_MAX
from transport.store import formats

_NO_NEED: Final = "no partition needs an election"
_MOST_NAMED: Final = 3
_MOST_REASONS: Final = 5
"""The reasons for an error that have rows of their own."""

T = TypeVar("T")


@click.group()
def leader() -> None:
    """Elect leaders."""


@frozen
class Wanted:
    """The partitions to elect leaders for: `plain` ones (None means all), and those with a new order."""

    plain: tuple[TopicPartition, ...] | None
    orders: Mapping[TopicPartition, tuple[int, ...]] = field(factory=dict)


def read_wanted(file: Path) -> Wanted:
    """Read `{"partitions":[{"topic":"t","partition":0,"replicas":[3,1,2]}]}`, where `replicas` is optional.

    A file for `klamm reassignment` has this form as well. Raises click.ClickException with the place of a mistake.
    """
    try:
        data = read_text(file, LIMIT).encode()
    except UnreadableFile as fault:
        raise click.ClickException(str(fault)) from None
    try:
        entries = load_object(data).get("partitions")
        tps = formats.decode_partitions(str(file), data)
    except FileFault as fault:
        raise click.ClickException(f"{file}: {fault}") from None
    except formats.UndecodableZnode as fault:
        raise click.ClickException(f"{file}: {fault.fault}") from None
    if not tps:
        raise click.ClickException(f"{file}: the list of partitions is empty")
    orders: dict[TopicPartition, tuple[int, ...]] = {}
    seen = set[TopicPartition]()
    for number, entry in enumerate(entries or ()):
        tp = TopicPartition(entry["topic"], entry["partition"])
        if not 0 <= tp.partition <= INT_MAX:
            text = f"partitions[{number}].partition must be from 0 to {INT_MAX}, is {tp.partition}"
            raise click.ClickException(f"{file}: {text}")
        if tp in seen:
            raise click.ClickException(f"{file}: partitions[{number}]: duplicate partition {tp}")
        seen.add(tp)
        if entry.get("replicas") is not None:
            orders[tp] = _order(f"{file}: partitions[{number}].replicas", entry["replicas"])
    return Wanted(tuple(tp for tp in tps if tp not in orders), orders)


def parse_order(text: str) -> tuple[int, ...]:
    """Return the order in an option such as `3,1,2`. Raises UsageError."""
    order = broker_ids(text)
    if order is None:
        text = f"--replicas {text}: name broker ids up to {INT_MAX}, the leader first: --replicas 3,1,2"
        raise click.UsageError(text)
    return order


def _order(where: str, replicas: object) -> tuple[int, ...]:
    if not isinstance(replicas, list) or not replicas or not all(map(is_broker_id, replicas)):
        raise click.ClickException(f"{where} must be a list of broker ids, the leader first")
    if len(set(replicas)) < len(replicas):
        raise click.ClickException(f"{where} {replicas} names a broker twice")
    return tuple(replicas)


_NAMING: Final = (
    click.option("--topic", type=TOPIC, help="The topic of --partition."),
    click.option("--partition", type=PARTITION, help="The partition of --topic."),
    click.option("--replicas", metavar="3,1,2", help="A new order for the replicas of --partition, the leader first."),
    click.option(
        "--path-to-json-file",
        "file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help='{"partitions": [{"topic": "t", "partition": 0}]}, with "replicas": [3, 1, 2] for a new order.',
    ),
    click.option("--all-topic-partitions", "every", is_flag=True, help="All partitions that need an election."),
)


def _naming_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options that select partitions; the command receives them as `wanted`."""

    @wraps(command)
    def with_wanted(
        *,
        topic: str | None,
        partition: int | None,
        replicas: str | None,
        file: Path | None,
        every: bool,
        **options: object,
    ) -> T:
        if (topic is None) is not (partition is None):
            raise click.UsageError("--topic and --partition go together: give both")
        if [topic is not None, file is not None, every].count(True) != 1:
            text = "give either --topic and --partition, --path-to-json-file, or --all-topic-partitions"
            raise click.UsageError(text)
        if replicas is not None and topic is None:
            raise click.UsageError("--replicas is the order of one partition: give it with --topic and --partition")
        if file is not None:
            wanted = read_wanted(file)
        elif topic is not None and partition is not None:
            wanted = _one(TopicPartition(topic, partition), replicas)
        else:
            wanted = Wanted(None)
        return command(wanted=wanted, **options)

    return with_options(with_wanted, _NAMING)


def _one(tp: TopicPartition, replicas: str | None) -> Wanted:
    return Wanted((tp,)) if replicas is None else Wanted((), {tp: parse_order(replicas)})


Outcome = Literal["elected", "not_needed", "failed", "needed"]
_OUTCOMES: Final[dict[ErrorCode, Outcome]] = {ErrorCode.NONE: "elected", ErrorCode.ELECTION_NOT_NEEDED: "not_needed"}


class Election(Struct):
    """The outcome for a partition: `error` is the name of Kafka's code.

    A dry run has `needed` where the election can succeed, and the refusals that it foresees.
    """

    topic: str
    partition: int
    outcome: Outcome
    error: str
    message: str | None


@leader.command()
@click.option(
    "--election-type",
    type=click.Choice([kind.name.lower() for kind in ElectionType]),
    required=True,
    help="preferred: the first replica. unclean: any live one if no member of the ISR is alive; loses records.",
)
@_naming_options
@dry_run_option
@yes_option
@output_options(list[Election], knows_format=True)
@changed_cluster_options
def elect(cluster: Cluster, election_type: str, wanted: Wanted, *, dry_run: bool, yes: bool, output: Format) -> View:
    """Elect leaders of one partition, of those in a file, or of all.

    If replicas are given, in a file or as an option, the partition's replicas take that order and the first of them
    leads. It must be alive and in the ISR, and the partition must not be moving; otherwise the partition does not
    change. For all partitions, the table has a row for each reason; JSON and YAML have each partition.
    """
    kind = ElectionType[election_type.upper()]
    if wanted.orders and kind is not ElectionType.PREFERRED:
        raise click.UsageError("--replicas and orders in a file need --election-type preferred")
    is_summed_up = wanted.plain is None and not output.is_document
    if dry_run:
        expected = _expected(kind, wanted, cluster.ask(lambda admin: admin.read_metadata()))
        shown = _view(expected, is_summed_up=is_summed_up, is_expected=True)
        return evolve(shown, parts=[*shown.parts, DRY_RUN])
    if kind is ElectionType.UNCLEAN:
        cluster.announce()
        confirm("An unclean election loses the records that the new leader lacks. Go on?", yes=yes, is_new=False)

    results = cluster.ask(lambda admin: admin.elect_leaders(kind, wanted.plain, orders=wanted.orders))
    return _view(results, is_summed_up=is_summed_up)


def _expected(kind: ElectionType, wanted: Wanted, metadata: MetadataResponse) -> list[PartitionError]:
    """Return the outcomes of the needed elections, as far as metadata shows them: the controller may still refuse one.

    The message of an election that can succeed has the replicas and the ISR.
    """
    named = None if wanted.plain is None else {*wanted.plain, *wanted.orders}
    unknown = sorted((named or set()) - {state.tp for state in metadata.partitions})
    if unknown:
        raise click.ClickException(f"there is no partition {', '.join(map(str, unknown))}: see `klamm topic list`")
    there = metadata.partitions
    if named is None:
        states = {state.tp: state for state in there if state.leader != LEADER_DURING_DELETE}
    else:
        states = {state.tp: state for state in there if state.tp in named}
    live = {broker.id for broker in metadata.brokers}
    refused = refusals(states, wanted.orders, live)
    outcomes = list(refused.values())
    for tp, state in states.items():
        order = wanted.orders.get(tp)
        if tp not in refused and _needs(kind, order, state):
            text = f"replicas {list(state.replicas)}, ISR {list(state.isr)}"
            failed = failure(kind, state, live) if order is None else None
            outcomes.append(failed or PartitionError(*tp, message=text))
    return outcomes


def _view(results: Sequence[PartitionError], *, is_summed_up: bool, is_expected: bool = False) -> View:
    """Return the outcomes of elections, or those that are expected of them."""
    in_order = sorted(results, key=lambda item: item.tp)
    rows = [_row(item, is_expected=is_expected) for item in in_order]
    outcomes = {(item.error, row.outcome) for item, row in zip(in_order, rows, strict=True)}
    names = {error: outcome.replace("_", " ") for error, outcome in outcomes}
    parts = _summary(in_order, names) if is_summed_up else _each(in_order, names)
    failed = [item for item in in_order if item.error not in _OUTCOMES]
    if failed:
        verb = "would fail" if is_expected else "failed"
        parts.append(Note(f"Error: {len(failed)} of {len(results)} elections {verb}: {_reason(failed[0])}"))
    return View(rows, parts, int(bool(failed)))


def _row(item: PartitionError, *, is_expected: bool) -> Election:
    if is_expected and item.error is ErrorCode.NONE:
        return Election(item.topic, item.partition, "needed", item.error.name, None)
    outcome = _OUTCOMES.get(item.error, "failed")
    return Election(item.topic, item.partition, outcome, item.error.name, item.message or None)


def _needs(kind: ElectionType, order: tuple[int, ...] | None, state: PartitionState) -> bool:
    if kind is ElectionType.UNCLEAN:
        return state.leader < 0
    return state.leader != (order or state.replicas)[0] or (order is not None and order != state.replicas)


def _each(results: Sequence[PartitionError], names: Mapping[ErrorCode, str]) -> list[Table | Note | str]:
    if not results:
        return [_NO_NEED]
    cells = [(item.topic, item.partition, names[item.error], item.message or _words(item.error)) for item in results]
    return [Table(("topic", "partition", "outcome", "message"), cells)]


def _summary(results: Sequence[PartitionError], names: Mapping[ErrorCode, str]) -> list[Table | Note | str]:
    """Return a row for each reason, with some of its partitions: a dead broker may be the reason for thousands."""
    by_error: defaultdict[ErrorCode, list[PartitionError]] = defaultdict(list)
    for item in results:
        by_error[item.error].append(item)
    rows = [row for error, items in sorted(by_error.items()) for row in _rows(error, names[error], items)]
    if not rows:
        return [_NO_NEED]
    return [Table(("partitions", "outcome", "reason", "such as"), rows, numbers=("partitions",))]


def _rows(error: ErrorCode, outcome: str, items: Iterable[PartitionError]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of an error: one for each text, or a single one if there are many."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for item in items:
        by_reason["" if error is ErrorCode.NONE else _without_name(item)].append(str(item.tp))
    if len(by_reason) > _MOST_REASONS:
        by_reason = defaultdict(list, {reason_of(error): list(chain.from_iterable(by_reason.values()))})
    for reason, names in sorted(by_reason.items(), key=lambda entry: -len(entry[1])):
        such_as = ", ".join(names[:_MOST_NAMED])
        left = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        yield f"{len(names):,}", outcome, reason, such_as + left


def _without_name(item: PartitionError) -> str:
    """Return why an election failed, in words that may be true of other partitions."""
    text = _reason(item)
    for name in (f" of {item.tp}", f"partition {item.tp}", str(item.tp)):
        text = text.replace(name, "" if name.startswith(" ") else "the partition")
    return text


def _reason(item: PartitionError) -> str:
    return reason_of(item.error, item.message)


def _words(error: ErrorCode) -> str:
    return "-" if error in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED) else reason_of(error)
