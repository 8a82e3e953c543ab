"""Dynamic settings of topics and brokers: the values in effect.

A topic's own value outranks the default of all brokers, which outranks the controller's start-up configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from controller.config import ControllerConfig
from controller.model.context import ControllerContext
from controller.model.facts import MinIsrRead
from controller.model.faults import unknown_topic
from controller.model.rounds import Rounds, Step, apply, read
from transport.dynamic_configs import (
    BROKER_SETTINGS,
    DEFAULT_ONLY,
    MIN_INSYNC_REPLICAS,
    TOPIC_SETTINGS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
    Layer,
    as_topic_layer,
    in_effect,
)
from transport.errors import ErrorCode
from transport.log import get_logger
from transport.messages import ConfigEntry, ConfigResource, ConfigResourceType, DescribeConfigsResponse, ResourceConfigs
from transport.metadata import number_in
from transport.settings import render, settings_of
from transport.store import formats, paths
from transport.store.protocol import Znode

log = get_logger(__name__)

TOPIC = "DYNAMIC_TOPIC_CONFIG"
BROKER = "DYNAMIC_BROKER_CONFIG"
DEFAULT_BROKER = "DYNAMIC_DEFAULT_BROKER_CONFIG"
STATIC = "STATIC_BROKER_CONFIG"


def unclean_allowed(context: ControllerContext, topics: Sequence[str]) -> Rounds[frozenset[str]]:
    """Return those of `topics` whose settings allow a replica outside the ISR to lead (reference: Kafka's election).

    Undecodable settings and invalid values do not allow it.
    """
    default, settings = yield from _read_layers(topics)
    inherited = () if default is None else (as_topic_layer(default), static_layer(context.config))
    return frozenset(
        name for name, own in settings.items() if own is not None and _allows_unclean(name, (own, *inherited))
    )


def read_min_isrs(context: ControllerContext, topics: Sequence[str]) -> Rounds[None]:
    """Load the min.insync.replicas of `topics`; settings that cannot be decoded are ignored."""
    known = [name for name in topics if name in context.topics]
    if not known:
        return
    default, settings = yield from _read_layers(known)
    setting = TOPIC_SETTINGS[MIN_INSYNC_REPLICAS]
    inherited = [layer for layer in (default, _start_layer(context)) if layer is not None]
    found = {
        name: in_effect(setting, [own or Layer(TOPIC, {}), *map(as_topic_layer, inherited)]).value
        for name, own in settings.items()
    }
    news = [MinIsrRead(name, int(value)) for name, value in found.items() if value != context.min_isr(name)]
    yield from apply("settings", [Step(facts=tuple(news))] if news else [])


def _start_layer(context: ControllerContext) -> Layer:
    """Return the start-up settings that topics inherit: those of Kafka's brokers where these have told theirs."""
    layer, told = static_layer(context.config), context.kafka.min_isr
    return layer if told is None else Layer(STATIC, {**layer.settings, MIN_INSYNC_REPLICAS: str(told)})


def _read_layers(topics: Sequence[str]) -> Rounds[tuple[Layer | None, dict[str, Layer | None]]]:
    """Return the default settings of all brokers, and those of each topic; None for settings that are undecodable."""
    wanted = list(dict.fromkeys(topics))
    default_path = paths.broker_config(None)
    default_znode, *znodes = yield from read([default_path, *map(paths.topic_config, wanted)])
    own = {
        name: decode_layer(TOPIC, paths.topic_config(name), znode) for name, znode in zip(wanted, znodes, strict=True)
    }
    return decode_layer(DEFAULT_BROKER, default_path, default_znode), own


def _allows_unclean(topic: str, layers: Sequence[Layer]) -> bool:
    found = in_effect(TOPIC_SETTINGS[UNCLEAN_LEADER_ELECTION_ENABLE], layers)
    for fault in found.faults:
        log.error("no unclean election: alter the setting with `klamm config alter`", topic=topic, fault=fault)
    return found.value is True and not found.faults


def decode_layer(source: str, path: str, znode: Znode | None) -> Layer | None:
    """Return the settings in a znode: empty if it does not exist, None if they cannot be decoded."""
    if znode is None:
        return Layer(source, {})
    try:
        return Layer(source, formats.decode_config(path, znode.data))
    except formats.UndecodableZnode as fault:
        log.error("settings set aside: they cannot be decoded, delete or repair them", fault=str(fault))
        return None


def static_layer(config: ControllerConfig) -> Layer:
    """Return the controller's start-up settings that differ from the defaults."""
    values = attrs.asdict(config)
    settings = settings_of(ControllerConfig)
    given = {s.name: render(values[field]) for field, s in settings.items() if values[field] not in (s.default, None)}
    return Layer(STATIC, given)


# --- describing them --------------------------------------------------------------------------------------------


def config_path(resource: ConfigResource) -> str:
    """Return the path of a resource's settings."""
    if resource.type is ConfigResourceType.TOPIC:
        return paths.topic_config(resource.name)
    return paths.broker_config(int(resource.name) if resource.name else None)


def resource_fault(context: ControllerContext, resource: ConfigResource) -> tuple[ErrorCode, str] | None:
    """Return why a resource cannot have settings, None if it can."""
    if resource.type is ConfigResourceType.TOPIC:
        if resource.name not in context.topics:
            return unknown_topic(resource.name)
    elif resource.name and number_in(resource.name) is None:
        return ErrorCode.INVALID_REQUEST, f"{resource.name!r:.100} is no broker's id"
    return None


def describe_configs(
    context: ControllerContext, resources: Sequence[ConfigResource]
) -> Rounds[DescribeConfigsResponse]:
    """Return the settings in effect for each resource, with their sources."""
    faults = {resource: resource_fault(context, resource) for resource in resources}
    sound = [resource for resource, fault in faults.items() if fault is None]
    default_znode, *znodes = yield from read([paths.broker_config(None), *map(config_path, sound)])
    default = decode_layer(DEFAULT_BROKER, paths.broker_config(None), default_znode) or Layer(DEFAULT_BROKER, {})
    found = dict(zip(sound, znodes, strict=True))
    faults |= yield from _unknown_brokers(context, found)
    return DescribeConfigsResponse(
        tuple(
            ResourceConfigs(resource, (), *fault)
            if fault is not None
            else _describe(context, resource, found[resource], default)
            for resource, fault in faults.items()
        )
    )


def _unknown_brokers(
    context: ControllerContext, found: Mapping[ConfigResource, Znode | None]
) -> Rounds[dict[ConfigResource, tuple[ErrorCode, str] | None]]:
    """Return the error of each unknown broker: not alive, without replicas, settings or log directories."""
    known = {*context.brokers, *context.brokers_assigned()}
    of_brokers = [each for each in found if each.type is ConfigResourceType.BROKER and each.name]
    doubtful = [each for each in of_brokers if found[each] is None and int(each.name) not in known]
    storages = yield from read([paths.storage_id(int(each.name)) for each in doubtful])
    return {
        each: (
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"there is no broker {each.name}, and nothing is known of it: see `klamm broker list`",
        )
        for each, storage in zip(doubtful, storages, strict=True)
        if storage is None
    }


def _describe(
    context: ControllerContext, resource: ConfigResource, znode: Znode | None, default: Layer
) -> ResourceConfigs:
    path = config_path(resource)
    is_topic = resource.type is ConfigResourceType.TOPIC
    own = decode_layer(TOPIC if is_topic else BROKER if resource.name else DEFAULT_BROKER, path, znode)
    if own is None:
        return ResourceConfigs(resource, (), ErrorCode.INVALID_CONFIG, f"{path} cannot be decoded: repair or delete it")
    settings = TOPIC_SETTINGS if is_topic else BROKER_SETTINGS
    static = static_layer(context.config)
    layers = (own, as_topic_layer(default), as_topic_layer(static)) if is_topic else (own, default, static)
    if own.source == BROKER:
        # Settings that must be equal on all brokers do not count if they are set for one.
        counts = {name: value for name, value in own.settings.items() if name not in DEFAULT_ONLY}
        layers = (Layer(BROKER, counts), *layers[1:])
    entries = []
    for setting in settings.values():
        found = in_effect(setting, layers)
        entries.append(ConfigEntry(setting.name, render(found.value), found.source))
    others = sorted(name for name in own.settings if name not in settings)
    entries += [ConfigEntry(name, own.settings[name], own.source) for name in others]
    return ResourceConfigs(resource, tuple(entries))
