"""`klamm config`: describe and alter settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

import click
from msgspec import Struct

from controller.admin.cluster_admin import ClusterAdmin
from klamm.cli.completions import entity_names, new_settings, old_settings
from klamm.cli.connect import Cluster, changed_cluster_options, cluster_options
from klamm.cli.decorators import with_options
from klamm.cli.formats import DRY_RUN, Note, Table, View, dry_run_option, output_options
from klamm.cli.names import check_text
from transport.dynamic_configs import BROKER_SETTINGS, MOVE_SETTINGS
from transport.errors import ErrorCode, reason_of
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
)
from transport.settings import LONG_MAX

_NO_LIMIT: Final = "no limit"
_TYPES: Final = {"topics": ConfigResourceType.TOPIC, "brokers": ConfigResourceType.BROKER}
_ITEM: Final = re.compile(r"([^=,]+)=(\[[^\]]*\]|[^,]*)(?:,|$)")


@click.group()
def config() -> None:
    """Describe and change settings of topics and brokers."""


def entity_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select a topic or broker."""
    options = (
        click.option(
            "--entity-type", type=click.Choice(list(_TYPES)), required=True, help="Settings of topics or of brokers."
        ),
        click.option(
            "--entity-name",
            metavar="NAME",
            shell_complete=entity_names,
            help="The name of the topic, or the id of the broker.",
        ),
        click.option("--entity-default", is_flag=True, help="The default of all brokers, instead of one broker."),
    )
    return with_options(command, options)


def _resource(entity_type: str, name: str | None, *, default: bool) -> ConfigResource:
    """Return the topic or broker. Raises click.UsageError."""
    if entity_type == "topics" and (default or not name):
        raise click.UsageError("name the topic with --entity-name: topics have no default of their own")
    check_text(name or "", "--entity-name")
    if bool(name) is default:
        raise click.UsageError("name the broker with --entity-name, or all of them with --entity-default")
    return ConfigResource(_TYPES[entity_type], name or "")


class SettingRow(Struct):
    """A setting in effect, and the source of its value; null for a value that means no limit."""

    name: str
    value: str | None
    source: str


@config.command()
@entity_options
@output_options(list[SettingRow], watch=True)
@cluster_options
def describe(cluster: Cluster, entity_type: str, entity_name: str | None, *, entity_default: bool) -> View:
    """Show the settings in effect, and the source of each value."""
    resource = _resource(entity_type, entity_name, default=entity_default)

    [answer] = cluster.ask_settings(lambda admin: admin.describe_configs([resource]))
    _require_success(resource, answer.error, answer.message)
    shown = [entry for entry in answer.entries if entry.name not in MOVE_SETTINGS]
    rows = [SettingRow(entry.name, _limit(entry), entry.source) for entry in shown]
    cells = [(row.name, _NO_LIMIT if row.value is None else row.value, row.source) for row in rows]
    return View(rows, [Table(("name", "value", "source"), cells)])


def _limit(entry: ConfigEntry) -> str | None:
    """Return the value of a setting, or None if it means "no limit"."""
    setting = BROKER_SETTINGS.get(entry.name)
    is_none = setting is not None and setting.default == LONG_MAX and entry.value == str(LONG_MAX)
    return None if is_none else entry.value


class AlteredSettings(Struct):
    """The topic or broker whose settings were altered; `entity_name` is null for the default of all brokers."""

    entity_type: str
    entity_name: str | None
    outcome: Literal["altered", "checked"]
    is_registered: bool | None = None
    """Whether the broker is registered now; null for topics and for the default of all brokers."""


@config.command()
@entity_options
@click.option(
    "--add-config",
    metavar="NAME=VALUE,...",
    shell_complete=new_settings,
    help="Set values; write one that contains commas in [brackets].",
)
@click.option(
    "--delete-config",
    metavar="NAME,...",
    shell_complete=old_settings,
    help="Remove values, so that they are inherited again.",
)
@dry_run_option
@output_options(AlteredSettings)
@changed_cluster_options
def alter(
    cluster: Cluster,
    entity_type: str,
    entity_name: str | None,
    *,
    entity_default: bool,
    add_config: str | None,
    delete_config: str | None,
    dry_run: bool,
) -> View:
    """Change settings at run time. Either all changes are made, or none."""
    resource = _resource(entity_type, entity_name, default=entity_default)
    changes = [AlterableConfig(name, ConfigOperation.SET, value) for name, value in parse_settings(add_config)]
    for text, option in ((add_config, "--add-config"), (delete_config, "--delete-config")):
        check_text(text or "", option)
    names = [name.strip() for name in (delete_config or "").split(",")]
    changes += [AlterableConfig(name, ConfigOperation.DELETE) for name in names if name]
    if not changes:
        raise click.UsageError("name the changes with --add-config or --delete-config")

    async def work(admin: ClusterAdmin) -> View:
        is_one_broker = resource.type is ConfigResourceType.BROKER and resource.name
        metadata = await admin.read_metadata(()) if is_one_broker else None
        wanted = [AlterConfigsResource(resource, tuple(changes))]
        async with cluster.settings_of(admin, metadata) as settings:
            [outcome] = await settings.incremental_alter_configs(wanted, validate_only=dry_run)
        _require_success(resource, outcome.error, outcome.message)
        is_registered = None if metadata is None else int(resource.name) in [each.id for each in metadata.brokers]
        entity = _entity(resource)
        done = f"the settings of {entity} can be altered so" if dry_run else f"altered the settings of {entity}"
        lines: list[str | Note] = [done]
        # It may be down, or a mistake. Its settings are stored, as in Kafka.
        if is_registered is False:
            text = f"broker {resource.name} is not registered now: its settings take effect when it registers"
            lines.append(Note(text))
        if dry_run:
            lines.append(DRY_RUN)
        altered = AlteredSettings(entity_type, entity_name, "checked" if dry_run else "altered", is_registered)
        return View(altered, lines)

    return cluster.ask(work)


def _entity(resource: ConfigResource) -> str:
    if resource.type is ConfigResourceType.TOPIC:
        return f"topic {resource.name}"
    return f"broker {resource.name}" if resource.name else "all brokers"


def _require_success(resource: ConfigResource, error: ErrorCode, message: str) -> None:
    if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise click.ClickException(f"there is no topic {resource.name}: see `klamm topic list`")
    if error is not ErrorCode.NONE:
        raise click.ClickException(reason_of(error, message))


def parse_settings(text: str | None) -> Sequence[tuple[str, str]]:
    """Parse "name=value,name=[value,value]", as Kafka's tools do. Raises click.BadParameter."""
    settings = []
    rest = text or ""
    while rest:
        item = _ITEM.match(rest)
        if item is None:
            raise click.BadParameter(
                f"{rest!r} is not of the form NAME=VALUE,NAME=[VALUE,VALUE]", param_hint="--add-config"
            )
        name, value = item.groups()
        settings.append((name.strip(), value[1:-1] if value.startswith("[") else value))
        rest = rest[item.end() :]
    return settings
