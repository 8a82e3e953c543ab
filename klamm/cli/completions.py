"""The names that a shell completes: of topics, brokers, settings and rollouts of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import click
from click.shell_completion import CompletionItem

from controller.admin.client import AdminClient
from controller.admin.move_admin import MoveAdmin
from klamm.cli.connect import Cluster
from klamm.cli.profiles import Place, settled
from transport.dynamic_configs import BROKER_SETTINGS, MOVE_SETTINGS, TOPIC_SETTINGS
from transport.messages import ConfigResource, ConfigResourceType

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 2.0
"""The time that somebody waits for a completion."""


def topics_of(ctx: click.Context) -> list[str]:
    """Return the topics of the cluster that a half-written command names, in order; none if it does not answer."""
    found = _answer(ctx, lambda cluster: cluster.ask(lambda admin: admin.read_metadata()))
    return [] if found is None else sorted({state.topic for state in found.partitions})


def brokers_of(ctx: click.Context) -> list[str]:
    """Return the ids of the live brokers of the cluster, in order; none if it does not answer."""
    found = _answer(ctx, lambda cluster: cluster.ask_moves(lambda admin: admin.read_metadata(())))
    ids = () if found is None else sorted(broker.id for broker in found.brokers)
    return list(map(str, ids))


def settings_of(ctx: click.Context) -> list[str]:
    """Return the settings of the topic or broker that a half-written command names, in order.

    Without an answer of the cluster they are those that Klamm knows.
    """
    is_topic = ctx.params.get("entity_type") == "topics"
    kind = ConfigResourceType.TOPIC if is_topic else ConfigResourceType.BROKER
    resource = ConfigResource(kind, ctx.params.get("entity_name") or "")
    found = _answer(ctx, lambda cluster: cluster.ask_settings(lambda admin: admin.describe_configs([resource])))
    if found and found[0].entries:
        return sorted({entry.name for entry in found[0].entries} - set(MOVE_SETTINGS))
    return sorted(TOPIC_SETTINGS if is_topic else BROKER_SETTINGS)


def rollouts_of(ctx: click.Context) -> list[str]:
    """Return the rollouts of the controller, in its order; none if it does not answer, or has none."""

    async def names(admin: MoveAdmin) -> list[str]:
        return [told.name for told in await admin.describe_rollouts()] if isinstance(admin, AdminClient) else []

    return _answer(ctx, lambda cluster: cluster.ask_moves(names)) or []


# --- for options: the values that begin so ------------------------------------------------------------------------


def broker_lists(ctx: click.Context, _option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the last id of a list of brokers such as 1,2; none of those that are in it already."""
    # The brokers of a plan from a file are not those of the default cluster.
    return [] if ctx.params.get("snapshot") is not None else _last_of(begun, brokers_of(ctx))


def topic_lists(ctx: click.Context, _option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the last name of a list of topics such as orders,clicks; none of those that are in it already."""
    return [] if ctx.params.get("snapshot") is not None else _last_of(begun, topics_of(ctx))


def entity_names(ctx: click.Context, _option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a topic, or the id of a broker, by the type of entity before it."""
    names = brokers_of(ctx) if ctx.params.get("entity_type") == "brokers" else topics_of(ctx)
    return [CompletionItem(name) for name in names if name.startswith(begun)]


def new_settings(ctx: click.Context, _option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the last name of a list such as name=value,name=[value,value]; not a value."""
    if begun.rfind("[") > begun.rfind("]"):
        return []
    return _last_of(begun, [f"{name}=" for name in settings_of(ctx)])


def old_settings(ctx: click.Context, _option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the last name of a list of settings to delete."""
    return _last_of(begun, settings_of(ctx))


def _last_of(begun: str, names: Sequence[str]) -> list[CompletionItem]:
    head, comma, last = begun.rpartition(",")
    written = head.split(",")
    return [CompletionItem(f"{head}{comma}{name}") for name in names if name.startswith(last) and name not in written]


def _answer(ctx: click.Context, question: Callable[[Cluster], T]) -> T | None:
    # As long as a command is not complete, its context lacks defaults.
    given = ctx.params
    try:
        options = Place(*(given.get(name) for name in ("bootstrap_server", "zookeeper", "command_config")))
        return question(Cluster.at(settled(given.get("profile"), options, ctx), _PATIENCE_SECONDS))
    except (click.ClickException, SystemExit):
        return None
