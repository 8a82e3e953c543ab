"""`klamm topic`: create, list, describe, add partitions, delete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import click
from msgspec import Struct
from msgspec.structs import asdict, replace

from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.visibility import Visibility
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.formats import Note, Table, View, output_options
from klamm.cli.names import TOPIC
from klamm.cli.output import PartitionRow, known_leader
from klamm.cli.topic_changes import add_partitions, create, if_exists_option
from klamm.cli.topic_deletion import delete
from klamm.cli.topic_filters import (
    Lack,
    exclude_internal_option,
    has_patterns,
    lack_options,
    lacking,
    matching,
    none_lacks,
    require_topics,
    without_internal,
)
from klamm.cli.visibility import note, require_any
from klamm.cli.waiting_replicas import FailedRow, failed_rows, notes_of
from transport.messages import MetadataResponse, PartitionState
from transport.metadata import LEADER_DURING_DELETE


@click.group()
def topic() -> None:
    """Create, list, describe, enlarge and delete topics."""


class TopicRow(Struct):
    """A topic: its numbers of partitions and replicas, and whether it is being deleted.

    `partial` says what the list lacks because it is hidden from the user; null for a complete list.
    """

    topic: str
    partitions: int
    replicas: int
    marked_for_deletion: bool
    partial: str | None = None


@click.command(name="list")
@click.argument("names", nargs=-1, type=TOPIC)
@exclude_internal_option
@output_options(list[TopicRow], watch=True)
@cluster_options
def list_(cluster: Cluster, names: tuple[str, ...], exclude_internal: bool) -> View:
    """List the topics NAMES, or all. A name may be a pattern such as 'orders-*'."""

    async def work(admin: ClusterAdmin) -> tuple[Sequence[PartitionState], Visibility]:
        return (await admin.read_metadata()).partitions, await admin.visibility()

    found, visibility = cluster.ask(work)
    require_any(visibility, found)
    require_topics(names, found)
    states = matching(names, found)
    partial = visibility.lacking_topics
    rows = topic_rows(without_internal(states) if exclude_internal else states, partial)
    return View(rows, [topics_table(rows), *note(partial)])


def topics_table(rows: Iterable[TopicRow]) -> Table:
    """Return topics as a table; those being deleted are marked as by Kafka's tools."""
    marks = {True: " - marked for deletion", False: ""}
    cells = [(row.topic + marks[row.marked_for_deletion], row.partitions, row.replicas) for row in rows]
    return Table(("topic", "partitions", "replicas"), cells)


def topic_rows(states: Iterable[PartitionState], partial: str | None = None) -> list[TopicRow]:
    """Return a row for each topic, in the order of their names; `partial` says what they lack."""
    topics: defaultdict[str, list[PartitionState]] = defaultdict(list)
    for state in states:
        topics[state.topic].append(state)
    return [
        TopicRow(name, len(of_topic), len(of_topic[0].replicas), of_topic[0].leader == LEADER_DURING_DELETE, partial)
        for name, of_topic in sorted(topics.items())
    ]


class DescribedPartition(PartitionRow):
    """A partition, with its replicas that failed to carry out an order.

    `partial` says what the answer lacks because it is hidden from the user; null for a complete one.
    """

    failed_replicas: list[FailedRow]
    partial: str | None = None


@click.command()
@click.argument("names", nargs=-1, type=TOPIC)
@lack_options
@exclude_internal_option
@if_exists_option
@output_options(list[DescribedPartition], watch=True)
@cluster_options
def describe(
    cluster: Cluster, names: tuple[str, ...], lack: Lack | None, exclude_internal: bool, if_exists: bool
) -> View:
    """Show the partitions of the topics NAMES, or of all topics. A name may be a pattern such as 'orders-*'."""
    are_all = not names or has_patterns(names)

    async def work(admin: ClusterAdmin) -> tuple[MetadataResponse, str | None]:
        found = await admin.read_metadata(None if are_all else names)
        visibility = await admin.visibility()
        if are_all:
            require_any(visibility, found.partitions)
        if not if_exists:
            require_topics(names, found.partitions)
        states = matching(names, found.partitions)
        shown = (
            states if lack is None else await lacking(cluster, admin, replace(found, partitions=tuple(states)), lack)
        )
        kept = without_internal(shown) if exclude_internal else shown
        ordered = replace(found, partitions=tuple(sorted(kept, key=lambda s: s.tp)))
        return ordered, visibility.partial if are_all else visibility.lacking_moves

    found, partial = cluster.ask(work)
    rows = [
        DescribedPartition(
            **asdict(PartitionRow.of(state)), failed_replicas=failed_rows(found, state.tp), partial=partial
        )
        for state in found.partitions
    ]
    if lack is not None and not rows:
        return View(rows, [none_lacks(lack), *note(partial)])
    return View(rows, [_partitions_table(found.partitions), *map(Note, notes_of(found)), *note(partial)])


def _partitions_table(states: Sequence[PartitionState]) -> Table:
    """Return a line for each partition; the columns for adding and removing replicas only if there are any."""
    is_moving = any(s.is_being_reassigned for s in states)
    columns = (
        "topic",
        "partition",
        "leader",
        "epoch",
        "replicas",
        "isr",
        "offline",
        "adding",
        "removing",
        "controller epoch",
    )
    rows = []
    for s in states:
        leader = "deleting" if s.leader == LEADER_DURING_DELETE else known_leader(s.leader)
        row = (s.topic, s.partition, leader, s.leader_epoch, s.replicas, s.isr, s.offline_replicas)
        rows.append((*row, s.adding_replicas, s.removing_replicas, s.controller_epoch))
    return Table(columns, rows, wide={"controller epoch"} if is_moving else {"adding", "removing", "controller epoch"})


for command in (create, list_, describe, add_partitions, delete):
    topic.add_command(command)
