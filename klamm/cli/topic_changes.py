"""`klamm topic create` and `klamm topic add-partitions`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal

import click
import trio
from msgspec import Struct

from controller.admin.active_controller import RETRY_SECONDS, ClusterUnreachable
from controller.admin.cluster_admin import ClusterAdmin
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.formats import DRY_RUN, Format, Note, View, dry_run_option, output_options
from klamm.cli.names import COUNT, NEW_TOPIC, TOPIC, broker_ids, check_text
from klamm.cli.running import is_given
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.errors import ApiError, ErrorCode, reason_of
from transport.messages import ConfigResource, ConfigResourceType, NewPartitions, NewTopic, TopicError
from transport.wire import WireError

_SETTINGS_SECONDS: Final = 5.0
"""The most seconds spent on reading the settings of a new topic."""

_UNREAD: Final = (ApiError, ClusterUnreachable, WireError, click.ClickException)


class ChangedTopic(Struct):
    """The outcome of a change of a topic; `checked` is that of a dry run."""

    topic: str
    outcome: Literal["created", "exists", "enlarged", "missing", "checked"]


if_exists_option: Final = click.option(
    "--if-exists", is_flag=True, help="Succeed if there is no such topic, and leave it out."
)


@click.command()
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
@dry_run_option
@output_options(ChangedTopic, knows_format=True)
@changed_cluster_options
def create(  # noqa: PLR0913, PLR0917  one for each option
    cluster: Cluster,
    name: str,
    partitions: int,
    replication_factor: int,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    output: Format,
) -> View:
    """Create the topic NAME."""
    _require_one_way_to_place(replica_assignment)
    assignment = _parse_assignment(replica_assignment)
    new = NewTopic(name, partitions, replication_factor, assignment, _parse_configs(configs))

    async def work(admin: ClusterAdmin) -> View:
        [outcome] = (await admin.create_topics([new], validate_only=dry_run)).topics
        if if_not_exists and outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS:
            return View(ChangedTopic(name, "exists"), [f"topic {name} exists already"])
        _require_done([outcome])
        if dry_run:
            return View(ChangedTopic(name, "checked"), [f"topic {name} can be created", DRY_RUN])
        least_replicas = min(map(len, assignment), default=replication_factor)
        warnings = await _too_few(cluster, admin, name, least_replicas)
        if output.is_document:  # notes belong to tables, and the document has no place for a warning
            for warning in warnings:
                click.echo(warning.text, err=True)
        return View(ChangedTopic(name, "created"), [f"created topic {name}", *warnings])

    return cluster.ask(work)


async def _too_few(cluster: Cluster, admin: ClusterAdmin, name: str, replicas: int) -> list[Note]:
    """Return a warning if a topic has fewer replicas than min.insync.replicas; Kafka creates such a topic too."""
    settings: dict[str, str] = {}
    # The topic has been created, so a failure to read its settings is not reported.
    with trio.move_on_after(_SETTINGS_SECONDS), suppress(*_UNREAD):
        async with cluster.settings_of(admin) as reader:
            settings = await _settings_of(reader, name)
    least = int(settings.get(MIN_INSYNC_REPLICAS, "1"))
    if replicas >= least:
        return []
    return [
        Note(
            f"no producer with acks=all can write to {name}: {MIN_INSYNC_REPLICAS} is {least}, and a partition has "
            f"{replicas} replica{'' if replicas == 1 else 's'}: lower it with `klamm config alter --entity-type topics "
            f"--entity-name {name} --add-config {MIN_INSYNC_REPLICAS}=...`, or give partitions more replicas"
        )
    ]


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


@click.command(name="add-partitions")
@click.argument("name", type=TOPIC)
@click.option("--partitions", required=True, type=COUNT, help="The new total number of partitions.")
@click.option(
    "--replica-assignment",
    metavar="1:2:3,4:5:6",
    help="The brokers of each new partition, preferred leader first.",
)
@if_exists_option
@dry_run_option
@output_options(ChangedTopic)
@changed_cluster_options
def add_partitions(
    cluster: Cluster, name: str, partitions: int, replica_assignment: str | None, if_exists: bool, dry_run: bool
) -> View:
    """Add partitions to the topic NAME. Keys may then map to other partitions; existing records stay in place."""
    more = NewPartitions(name, partitions, _parse_assignment(replica_assignment))

    [outcome] = cluster.ask(lambda admin: admin.create_partitions([more], validate_only=dry_run)).topics
    if if_exists and outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return View(ChangedTopic(name, "missing"), [f"there is no topic {name}"])
    _require_done([outcome])
    if dry_run:
        return View(ChangedTopic(name, "checked"), [f"topic {name} can have {partitions} partitions", DRY_RUN])
    return View(ChangedTopic(name, "enlarged"), [f"topic {name} has {partitions} partitions"])


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
