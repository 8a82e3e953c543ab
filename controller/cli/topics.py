"""`klamm topic`: create, list, describe."""

from __future__ import annotations

import click

from controller.cli.cluster import Cluster, cluster_options, output_option
from controller.cli.output import partition_json, print_json, print_table
from controller.cli.running import run
from transport.errors import ErrorCode
from transport.messages import MetadataResponse, NewTopic


@click.group()
def topic() -> None:
    """Create, list and describe topics."""


@topic.command()
@click.argument("name")
@click.option("--partitions", default=1, show_default=True, help="How many partitions.")
@click.option("--replication-factor", default=1, show_default=True, help="How many replicas each has.")
@click.option(
    "--replica-assignment",
    metavar="1:2:3,4:5:6",
    help="The brokers of each partition, preferred leader first, instead of counts.",
)
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="A setting of the topic; repeatable.")
@cluster_options
def create(
    cluster: Cluster,
    name: str,
    partitions: int,
    replication_factor: int,
    replica_assignment: str | None,
    configs: tuple[str, ...],
) -> None:
    """Create the topic NAME."""
    assignment = _parse_assignment(replica_assignment)
    new = NewTopic(name, partitions, replication_factor, assignment, tuple(map(_parse_config, configs)))

    async def work() -> None:
        async with cluster.open_admin() as admin:
            [result] = (await admin.create_topics([new])).topics
            if result.error is not ErrorCode.NONE:
                raise click.ClickException(result.message or result.error.name)

    run(work)
    click.echo(f"created topic {name}")


def _parse_config(value: str) -> tuple[str, str]:
    name, equals, setting = value.partition("=")
    if not equals:
        raise click.BadParameter(f"{value!r} is not NAME=VALUE", param_hint="--config")
    return name.strip(), setting


def _parse_assignment(value: str | None) -> tuple[tuple[int, ...], ...]:
    if value is None:
        return ()
    try:
        return tuple(tuple(int(broker) for broker in partition.split(":")) for partition in value.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not broker ids like 1:2:3 for each partition, separated by commas",
            param_hint="--replica-assignment",
        ) from None


@topic.command(name="list")
@output_option
@cluster_options
def list_(cluster: Cluster, output: str) -> None:
    """List the topics."""
    metadata = _metadata(cluster, None)
    topics = sorted({state.topic for state in metadata.partitions})
    counts = {name: [state for state in metadata.partitions if state.topic == name] for name in topics}
    if output == "json":
        print_json([{"topic": name, "partitions": len(states)} for name, states in counts.items()])
    else:
        rows = [(name, len(states), len(states[0].replicas)) for name, states in counts.items()]
        print_table(["topic", "partitions", "replicas"], rows)


@topic.command()
@click.argument("names", nargs=-1)
@output_option
@cluster_options
def describe(cluster: Cluster, names: tuple[str, ...], output: str) -> None:
    """Show the partitions of the topics NAMES, or of all."""
    states = _metadata(cluster, names or None).partitions
    unknown = sorted(set(names) - {state.topic for state in states})
    if unknown:
        raise click.ClickException(f"there is no topic {', '.join(unknown)}: see `klamm topic list`")
    if output == "json":
        print_json([partition_json(state) for state in states])
        return
    columns = ["topic", "partition", "leader", "epoch", "replicas", "adding", "removing", "isr"]
    print_table(
        columns,
        [
            (s.topic, s.partition, s.leader, s.leader_epoch, s.replicas, s.adding_replicas, s.removing_replicas, s.isr)
            for s in sorted(states, key=lambda s: (s.topic, s.partition))
        ],
    )


def _metadata(cluster: Cluster, names: tuple[str, ...] | None) -> MetadataResponse:
    async def work() -> MetadataResponse:
        async with cluster.open_admin() as admin:
            return await admin.describe_cluster(names)

    return run(work)
