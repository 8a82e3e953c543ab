"""`klamm leader elect`: preferred and unclean elections, with the options of Kafka's kafka-leader-election."""

from __future__ import annotations

from pathlib import Path

import click

from controller.cli.cluster import Cluster, cluster_options, output_option
from controller.cli.output import print_document, print_table
from controller.cli.running import run
from transport.errors import ErrorCode
from transport.messages import ElectionType, PartitionError
from transport.metadata import TopicPartition
from transport.store import formats


@click.group()
def leader() -> None:
    """Elect leaders."""


@leader.command()
@click.option(
    "--election-type",
    type=click.Choice([kind.name.lower() for kind in ElectionType]),
    required=True,
    help="preferred: the first replica of the assignment. unclean: any live one if none of the ISR is; loses records.",
)
@click.option("--topic", help="The topic of --partition.")
@click.option("--partition", type=click.IntRange(min=0), help="The partition of --topic.")
@click.option(
    "--path-to-json-file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='{"partitions":[{"topic":"t","partition":0}]}',
)
@click.option("--all-topic-partitions", "every", is_flag=True, help="All partitions that need an election.")
@output_option
@cluster_options
def elect(
    cluster: Cluster,
    election_type: str,
    topic: str | None,
    partition: int | None,
    file: Path | None,
    output: str,
    *,
    every: bool,
) -> None:
    """Elect leaders of one partition, of those in a file, or of all that need it."""
    wanted = _wanted(topic, partition, file, every=every)

    async def work() -> tuple[PartitionError, ...]:
        async with cluster.open_admin() as admin:
            return await admin.elect_leaders(ElectionType[election_type.upper()], wanted)

    results = run(work)
    _print(results, output)
    failed = [item for item in results if item.error not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)]
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(results)} elections failed: {failed[0].message}")


def _wanted(topic: str | None, partition: int | None, file: Path | None, *, every: bool) -> list[TopicPartition] | None:
    """Return the partitions to elect for, None for all."""
    if (topic is None) is not (partition is None):
        raise click.UsageError("--topic and --partition go together: name both")
    if [topic is not None, file is not None, every].count(True) != 1:
        raise click.UsageError("name either --topic and --partition, --path-to-json-file, or --all-topic-partitions")
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    return None if file is None else _read(file)


def _read(file: Path) -> list[TopicPartition]:
    try:
        tps = formats.decode_partitions(str(file), file.read_bytes())
    except formats.UndecodableZnode as fault:
        raise click.ClickException(f"{file}: {fault.fault}") from None
    if not tps:
        raise click.ClickException(f"{file}: the list of partitions is empty")
    return list(tps)


def _print(results: tuple[PartitionError, ...], output: str) -> None:
    rows = [
        {"topic": item.topic, "partition": item.partition, "error": item.error.name, "message": item.message}
        for item in sorted(results, key=lambda item: (item.topic, item.partition))
    ]
    if output != "table":
        print_document(rows, output)
    elif rows:
        outcomes = {"NONE": "elected", "ELECTION_NOT_NEEDED": "not needed"}
        named = [
            (row["topic"], row["partition"], outcomes.get(str(row["error"]), row["error"]), row["message"] or "-")
            for row in rows
        ]
        print_table(["topic", "partition", "outcome", "message"], named)
    else:
        click.echo("no partition needs an election")
