"""`klamm topic`: create, list, describe, add partitions, delete."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import click
import trio
from msgspec.structs import replace

from controller.admin.active_controller import RETRY_SECONDS, ClusterUnreachable
from controller.admin.cluster_admin import ClusterAdmin
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.names import COUNT, NEW_TOPIC, TOPIC, broker_ids, check_text
from klamm.cli.output import partition_json, print_document, print_table
from klamm.cli.running import is_given, run, stoppable
from klamm.cli.topic_filters import (
    Lack,
    exclude_internal_option,
    lack_options,
    lacking,
    none_lacks,
    without_internal,
)
from klamm.cli.waiting_replicas import failed_replicas, tell_waiting
from klamm.interrupts import INTERRUPTED
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.errors import ApiError, ErrorCode, reason_of
from transport.messages import (
    ConfigResource,
    ConfigResourceType,
    MetadataResponse,
    NewPartitions,
    NewTopic,
    PartitionState,
    TopicError,
)
from transport.metadata import LEADER_DURING_DELETE
from transport.wire import WireError

POLL_SECONDS: Final = 0.2
"""The interval between looks at a deletion."""

_SETTINGS_SECONDS: Final = 5.0
"""The most seconds spent on reading the settings of a new topic."""

_UNREAD: Final = (ApiError, ClusterUnreachable, WireError, click.ClickException)


@click.group()
def topic() -> None:
    """Create, list, describe, enlarge and delete topics."""


@topic.command()
@click.argument("name", type=NEW_TOPIC)
@click.option("--partitions", type=COUNT, default=1, show_default=True, help="The number of partitions.")
@click.option(
    "--replication-factor", type=COUNT, default=1, show_default=True, help="The number of replicas of each partition."
)
@click.option(
    "--replica-assignment",
    metavar="1:2:3,4:5:6",
    help="The brokers of each partition, preferred leader first, instead of the counts.",
)
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="A setting of the topic; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Succeed if there is such a topic, and leave it as it is.")
@cluster_options
def create(
    cluster: Cluster,
    name: str,
    partitions: int,
    replication_factor: int,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create the topic NAME."""
    _require_one_way_to_place(replica_assignment)
    assignment = _parse_assignment(replica_assignment)
    new = NewTopic(name, partitions, replication_factor, assignment, _parse_configs(configs))

    async def work(admin: ClusterAdmin) -> None:
        [outcome] = (await admin.create_topics([new])).topics
        if if_not_exists and outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS:
            click.echo(f"topic {name} exists already")
            return
        _require_done([outcome])
        click.echo(f"created topic {name}")
        await _warn_of_too_few(cluster, admin, name, min(map(len, assignment), default=replication_factor))

    cluster.ask(work)


async def _warn_of_too_few(cluster: Cluster, admin: ClusterAdmin, name: str, replicas: int) -> None:
    """Warn if a topic has fewer replicas than min.insync.replicas requires; Kafka creates such a topic too."""
    settings: dict[str, str] = {}
    # The topic has been created, so a failure to read its settings is not reported.
    with trio.move_on_after(_SETTINGS_SECONDS), suppress(*_UNREAD):
        async with cluster.settings_of(admin) as reader:
            settings = await _settings_of(reader, name)
    least = int(settings.get(MIN_INSYNC_REPLICAS, "1"))
    if replicas < least:
        click.echo(
            f"no producer with acks=all can write to {name}: {MIN_INSYNC_REPLICAS} is {least}, and a partition has "
            f"{replicas} replica{'' if replicas == 1 else 's'}: lower it with `klamm config alter --entity-type topics "
            f"--entity-name {name} --add-config {MIN_INSYNC_REPLICAS}=...`, or give partitions more replicas",
            err=True,
        )


async def _settings_of(admin: ClusterAdmin, name: str) -> dict[str, str]:
    """Return the settings of a topic, which the cluster may not know yet."""
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    [answer] = await admin.describe_configs([resource])
    while answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        await trio.sleep(RETRY_SECONDS)
        [answer] = await admin.describe_configs([resource])
    return {entry.name: entry.value for entry in answer.entries}


def _require_one_way_to_place(replica_assignment: str | None) -> None:
    """Raise click.UsageError if counts are given with an assignment, which would ignore them."""
    if replica_assignment is not None and (is_given("partitions") or is_given("replication_factor")):
        raise click.UsageError("give either --replica-assignment, or --partitions and --replication-factor")


def _parse_configs(values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    parsed = tuple(map(_parse_config, values))
    names = [name for name, _ in parsed]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise click.BadParameter(f"{twice[0]} is given twice", param_hint="--config")
    return parsed


def _parse_config(value: str) -> tuple[str, str]:
    check_text(value, "--config")
    name, equals, setting = value.partition("=")
    if not equals:
        raise click.BadParameter(f"{value!r} is not of the form NAME=VALUE", param_hint="--config")
    return name.strip(), setting


_if_exists: Final = click.option(
    "--if-exists", is_flag=True, help="Succeed if there is no such topic, and leave it out."
)


@topic.command(name="add-partitions")
@click.argument("name", type=TOPIC)
@click.option("--partitions", required=True, type=COUNT, help="The new total number of partitions.")
@click.option(
    "--replica-assignment",
    metavar="1:2:3,4:5:6",
    help="The brokers of each new partition, preferred leader first.",
)
@_if_exists
@cluster_options
def add_partitions(
    cluster: Cluster, name: str, partitions: int, replica_assignment: str | None, if_exists: bool
) -> None:
    """Add partitions to the topic NAME. Keys may then map to other partitions; existing records stay in place."""
    more = NewPartitions(name, partitions, _parse_assignment(replica_assignment))

    [outcome] = cluster.ask(lambda admin: admin.create_partitions([more])).topics
    if if_exists and outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        click.echo(f"there is no topic {name}")
        return
    _require_done([outcome])
    click.echo(f"topic {name} has {partitions} partitions")


def _require_done(results: Sequence[TopicError]) -> None:
    for result in results:
        if result.error is not ErrorCode.NONE:
            raise click.ClickException(reason_of(result.error, result.message))


def _parse_assignment(value: str | None) -> tuple[tuple[int, ...], ...]:
    if value is None:
        return ()
    assignment = [broker_ids(replicas, ":") for replicas in value.split(",")]
    if None in assignment:
        raise click.BadParameter(
            f"{value!r} is not a list of broker ids such as 1:2:3 for each partition, separated by commas",
            param_hint="--replica-assignment",
        )
    return tuple(filter(None, assignment))


@topic.command(name="list")
@exclude_internal_option
@output_option
@cluster_options
def list_(cluster: Cluster, output: str, exclude_internal: bool) -> None:
    """List the topics."""
    states = cluster.ask(lambda admin: admin.read_metadata()).partitions
    rows = list_topics(without_internal(states) if exclude_internal else states)
    if output == "table":
        print_topics(rows)
    else:
        print_document(rows, output)


def print_topics(rows: Iterable[dict[str, Any]]) -> None:
    """Print the rows of topics as a table; topics being deleted are marked as by Kafka's tools."""
    marks = {True: " - marked for deletion", False: ""}
    cells = [(row["topic"] + marks[row["marked_for_deletion"]], row["partitions"], row["replicas"]) for row in rows]
    print_table(["topic", "partitions", "replicas"], cells)


def list_topics(states: Iterable[PartitionState]) -> list[dict[str, Any]]:
    """Return a row for each topic: its numbers of partitions and replicas, and whether it is being deleted."""
    topics: defaultdict[str, list[PartitionState]] = defaultdict(list)
    for state in states:
        topics[state.topic].append(state)
    return [
        {
            "topic": name,
            "partitions": len(of_topic),
            "replicas": len(of_topic[0].replicas),
            "marked_for_deletion": of_topic[0].leader == LEADER_DURING_DELETE,
        }
        for name, of_topic in sorted(topics.items())
    ]


@topic.command()
@click.argument("names", nargs=-1, type=TOPIC)
@lack_options
@exclude_internal_option
@_if_exists
@output_option
@cluster_options
def describe(
    cluster: Cluster,
    names: tuple[str, ...],
    lack: Lack | None,
    exclude_internal: bool,
    if_exists: bool,
    output: str,
) -> None:
    """Show the partitions of the topics NAMES, or of all topics."""

    async def work(admin: ClusterAdmin) -> MetadataResponse:
        found = await admin.read_metadata(names or None)
        unknown = sorted(set(names) - {state.topic for state in found.partitions})
        if unknown and not if_exists:
            raise click.ClickException(f"there is no topic {', '.join(unknown)}: see `klamm topic list`")
        states = found.partitions if lack is None else await lacking(cluster, admin, found, lack)
        shown = without_internal(states) if exclude_internal else states
        return replace(found, partitions=tuple(sorted(shown, key=lambda s: s.tp)))

    found = cluster.ask(work)
    if output != "table":
        rows = [partition_json(s) | {"failed_replicas": failed_replicas(found, s.tp)} for s in found.partitions]
        print_document(rows, output)
    elif lack is not None and not found.partitions:
        click.echo(none_lacks(lack))
    else:
        _print_partitions(found.partitions)
        tell_waiting(found)


def _print_partitions(states: Sequence[PartitionState]) -> None:
    """Print a line for each partition; the columns for adding and removing replicas only if there are any."""
    columns = ["topic", "partition", "leader", "epoch", "replicas", "isr", "offline"]
    moving = any(s.is_being_reassigned for s in states)
    rows = []
    for s in states:
        leader = "deleting" if s.leader == LEADER_DURING_DELETE else s.leader if s.leader >= 0 else None
        row = (s.topic, s.partition, leader, s.leader_epoch, s.replicas, s.isr, s.offline_replicas)
        rows.append((*row, s.adding_replicas, s.removing_replicas) if moving else row)
    print_table([*columns, "adding", "removing"] if moving else columns, rows)


@topic.command()
@click.argument("names", nargs=-1, required=True, type=TOPIC)
@click.option("--no-wait", is_flag=True, help="Return as soon as the deletion is certain to happen.")
@_if_exists
@cluster_options
def delete(cluster: Cluster, names: tuple[str, ...], no_wait: bool, if_exists: bool) -> None:
    """Delete the topics NAMES. Wait until no broker has any of their data."""
    named = tuple(dict.fromkeys(names))
    sys.exit(run(partial(_delete, cluster, named, waits=not no_wait, if_exists=if_exists)))


async def _delete(cluster: Cluster, names: Sequence[str], *, waits: bool, if_exists: bool) -> int:
    async with cluster.open_admin() as admin:
        results = (await admin.delete_topics(names)).topics
        absent = [one for one in results if if_exists and one.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        for result in absent:
            click.echo(f"there is no topic {result.name}")
        refused = [one for one in results if one.error is not ErrorCode.NONE and one not in absent]
        for result in refused:
            click.echo(f"{result.name}: refused: {reason_of(result.error, result.message)}", err=True)
        begun = [result.name for result in results if result.error is ErrorCode.NONE]
        left: list[str] = []
        if waits and begun:
            read = partial(admin.read_metadata, begun)
            await stoppable(partial(until_gone, read))
            left = sorted({state.topic for state in _being_deleted(await read())})
        return _report(begun, left, waits=waits) or (1 if refused else 0)


def _report(begun: Iterable[str], left: Collection[str], *, waits: bool) -> int:
    for name in begun:
        if not waits:
            click.echo(f"deleting topic {name}")
        elif name in left:
            click.echo(f"{name}: not deleted yet, the deletion continues by itself: see `klamm topic list`", err=True)
        else:
            click.echo(f"deleted topic {name}")
    return INTERRUPTED if left else 0


async def until_gone(read: Callable[[], Awaitable[MetadataResponse]]) -> None:
    """Wait for the end of deletions; print on stderr what they wait for, whenever that changes."""
    told = ""
    # One answer names deletions and live brokers. Between two, a broker may come back, and would seem to fail.
    while states := _being_deleted(metadata := await read()):
        news = waits_for(states, [broker.id for broker in metadata.brokers])
        if news and news != told:
            click.echo(news, err=True)
        told = news
        await trio.sleep(POLL_SECONDS)


def _being_deleted(metadata: MetadataResponse) -> list[PartitionState]:
    return [state for state in metadata.partitions if state.leader == LEADER_DURING_DELETE]


def waits_for(states: Iterable[PartitionState], live: Collection[int]) -> str:
    """Return what the first topic being deleted waits for; empty if no deletion waits for a broker."""
    states = [state for state in states if state.offline_replicas]
    if not states:
        return ""
    name = states[0].topic
    missing = sorted({r for state in states if state.topic == name for r in state.offline_replicas})
    dead = [r for r in missing if r not in live]
    if dead:
        return f"{name} waits for {_brokers(dead)} to come back and delete its replicas"
    return f"{name} waits for {_brokers(missing)} to delete replicas: this failed and is retried, see the broker's log"


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
