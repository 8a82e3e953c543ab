"""`klamm leader elect`: preferred and unclean elections, with the options of Kafka's kafka-leader-election.

In addition to Kafka, a request may give a new order of the replicas, leader first, which chooses the leader without a
move.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Final

import click

from klamm.cli import election_file
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.election_file import Wanted
from klamm.cli.names import PARTITION, TOPIC
from klamm.cli.output import print_document, print_table
from transport.errors import ErrorCode
from transport.messages import ElectionType, PartitionError
from transport.metadata import TopicPartition


@click.group()
def leader() -> None:
    """Elect leaders."""


_NAMING: Final = (
    click.option("--topic", type=TOPIC, help="The topic of --partition."),
    click.option("--partition", type=PARTITION, help="The partition of --topic."),
    click.option("--replicas", metavar="3,1,2", help="A new order for the replicas of --partition, the leader first."),
    click.option(
        "--path-to-json-file",
        "file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help='{"partitions":[{"topic":"t","partition":0}]}, with "replicas":[3,1,2] for a new order.',
    ),
    click.option("--all-topic-partitions", "every", is_flag=True, help="All partitions that need an election."),
)


def _naming_options(command: Callable[..., None]) -> Callable[..., None]:
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
    ) -> None:
        if (topic is None) is not (partition is None):
            raise click.UsageError("--topic and --partition go together: give both")
        if [topic is not None, file is not None, every].count(True) != 1:
            text = "give either --topic and --partition, --path-to-json-file, or --all-topic-partitions"
            raise click.UsageError(text)
        if replicas is not None and topic is None:
            raise click.UsageError("--replicas is the order of one partition: give it with --topic and --partition")
        if file is not None:
            wanted = election_file.read(file)
        elif topic is not None and partition is not None:
            wanted = _one(TopicPartition(topic, partition), replicas)
        else:
            wanted = Wanted(None)
        command(wanted=wanted, **options)

    for option in reversed(_NAMING):
        with_wanted = option(with_wanted)
    return with_wanted


def _one(tp: TopicPartition, replicas: str | None) -> Wanted:
    return Wanted((tp,)) if replicas is None else Wanted((), {tp: election_file.parse_order(replicas)})


@leader.command()
@click.option(
    "--election-type",
    type=click.Choice([kind.name.lower() for kind in ElectionType]),
    required=True,
    help="preferred: the first replica. unclean: any live one if no member of the ISR is alive; loses records.",
)
@_naming_options
@output_option
@cluster_options
def elect(cluster: Cluster, election_type: str, wanted: Wanted, output: str) -> None:
    """Elect leaders of one partition, of those in a file, or of all partitions that need it.

    If replicas are given, in a file or as an option, the partition's replicas take that order and the first of them
    leads. It must be alive and in the ISR, and the partition must not be moving; otherwise the partition does not
    change.
    """
    kind = ElectionType[election_type.upper()]
    if wanted.orders and kind is not ElectionType.PREFERRED:
        raise click.UsageError("--replicas and orders in a file need --election-type preferred")

    results = cluster.ask(lambda admin: admin.elect_leaders(kind, wanted.plain, orders=wanted.orders))
    _print(results, output)
    failed = [item for item in results if item.error not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)]
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(results)} elections failed: {failed[0].message}")


def _print(results: tuple[PartitionError, ...], output: str) -> None:
    rows = [
        {"topic": item.topic, "partition": item.partition, "error": item.error.name, "message": item.message}
        for item in sorted(results, key=lambda item: item.tp)
    ]
    if output != "table":
        print_document(rows, output)
    elif rows:
        outcomes = {"NONE": "elected", "ELECTION_NOT_NEEDED": "not needed"}
        named = [
            (row["topic"], row["partition"], outcomes.get(str(row["error"]), "failed"), row["message"] or "-")
            for row in rows
        ]
        print_table(["topic", "partition", "outcome", "message"], named)
    else:
        click.echo("no partition needs an election")
