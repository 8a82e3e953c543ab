"""Changes of settings: requested by administrators, and announced below `/config/changes` as in Kafka.

Every change creates a sequential znode there; brokers and the controller watch for these. The znode names the entity
whose settings changed. The settings themselves are read when the notification is processed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from controller.handlers import leadership, reassignments
from controller.handlers.configs import config_path, read_min_isrs, resource_fault, unclean_allowed
from controller.model.context import ControllerContext
from controller.model.facts import ConfigChangesSeen
from controller.model.faults import unknown_topic
from controller.model.rounds import (
    Rounds,
    Step,
    apply,
    children,
    commit,
    commit_each,
    existing,
    logged,
    read,
    until_none_is_left,
)
from controller.model.state_machines import PartitionPhase
from transport.dynamic_configs import (
    ALL_REPLICAS,
    BROKER_SETTINGS,
    DEFAULT_ONLY,
    MOVE_SETTINGS,
    TOPIC_SETTINGS,
    parse_replicas,
    render_replicas,
)
from transport.errors import ErrorCode, Fault
from transport.kafka.topic_settings import topic_settings_fault
from transport.log import get_logger
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    IncrementalAlterConfigsResponse,
    ResourceError,
)
from transport.settings import InvalidSetting, Kind, Setting, find
from transport.store import formats, paths
from transport.store.protocol import ANY_VERSION, Check, Create, Delete, Op, Set, Znode, write_over
from transport.store.requests import weight_of

log = get_logger(__name__)

EXPIRY_MS: Final = 15 * 60 * 1000
"""The time for which a notification is kept for brokers that were away."""

PURGED_AT_ONCE: Final = 500

_NOTICE: Final = "config_change_"
_NUMBERED: Final = re.compile(rf"{_NOTICE}([0-9]{{10}})")
_NEXT_NOTICE: Final = Create(f"{paths.CONFIG_CHANGES}/{_NOTICE}", sequence=True)
"""A notification without data, with the next name of the sequence."""

Alteration = Callable[[dict[str, str]], Fault | None]
"""Changes the settings that it is given, or returns why they are to stay as they are."""

_UNWRITABLE: Final = ErrorCode.OPERATION_NOT_ATTEMPTED, "the settings cannot be written: see the controller's log"


# --- processing notifications -----------------------------------------------------------------------------------


def watch_changes(context: ControllerContext) -> Rounds[None]:
    """Watch for notifications and mark the existing ones as handled. Must run before all settings are read."""
    names = yield from children(paths.CONFIG_CHANGES, watch=True)
    yield from _see(context, names)


def config_change(context: ControllerContext, now_ms: int) -> Rounds[None]:
    """Read the settings that new notifications name, adopt min ISRs, and elect where unclean elections are allowed.

    Old notifications are purged.
    """
    names = yield from children(paths.CONFIG_CHANGES, watch=True)
    yield from _purge(names, now_ms)
    changed = yield from _changed_topics(context, [name for name in names if name not in context.config_changes])
    if changed:
        yield from read_min_isrs(context, changed)
        yield from _elect_where_allowed(context, frozenset(changed))
    yield from _see(context, names)


def _see(context: ControllerContext, names: Sequence[str]) -> Rounds[None]:
    seen = frozenset(names)
    yield from apply("settings", [Step(facts=(ConfigChangesSeen(seen),))] if seen != context.config_changes else [])


def _changed_topics(context: ControllerContext, new: Sequence[str]) -> Rounds[list[str]]:
    """Return the known topics that notifications name; all topics if one names the default or is undecodable."""
    entries = [f"{paths.CONFIG_CHANGES}/{name}" for name in new]
    znodes = yield from read(entries)
    changed = dict.fromkeys(_changed_path(path, znode) for path, znode in zip(entries, znodes, strict=True))
    if None in changed or paths.broker_config(None) in changed:
        return list(context.topics)
    topics = [_topic_at(path) for path in changed if path is not None]
    return [name for name in topics if name in context.topics]


def _changed_path(path: str, znode: Znode | None) -> str | None:
    """Return the path of the settings that a notification names, None if it cannot be decoded."""
    try:
        return None if znode is None else f"/config/{formats.decode_config_change(path, znode.data)}"
    except formats.UndecodableZnode as fault:
        log.error("reading the settings of all topics: a notification cannot be decoded", fault=str(fault))
        return None


def _elect_where_allowed(context: ControllerContext, topics: Container[str]) -> Rounds[None]:
    """Elect leaders for Offline partitions of those of `topics` whose settings allow an unclean election."""
    offline = [tp for tp in context.in_phase(PartitionPhase.OFFLINE) if tp.topic in topics]
    if not offline:
        return
    allowed = yield from unclean_allowed(context, [tp.topic for tp in offline])
    tps = [tp for tp in offline if tp.topic in allowed]
    yield from leadership.elect_leaders(context, tps)
    # A move may have been waiting only for a leader.
    yield from reassignments.finish_ready(context, tps)


def _purge(names: Sequence[str], now_ms: int) -> Rounds[None]:
    # The names are sorted by age. If more remain than are purged at once, the deletions fire the watch again.
    notifications = [f"{paths.CONFIG_CHANGES}/{name}" for name in names[:PURGED_AT_ONCE]]
    if not (yield from _expired(notifications[:1], now_ms)):
        return
    expired = yield from _expired(notifications, now_ms)
    deletes = [Step(writes=(Delete(path),)) for path in expired]
    stay = logged("old notifications of settings stay: they are tried again with the next change of settings")
    yield from commit("purge", deletes, on_rejected=stay)


def _expired(notifications: Sequence[str], now_ms: int) -> Rounds[list[str]]:
    found = yield from existing(str, notifications)
    return [path for path, znode in found.items() if znode.stat.ctime_ms < now_ms - EXPIRY_MS]


# --- requests of administrators ---------------------------------------------------------------------------------


def alter_configs(
    context: ControllerContext,
    resources: Sequence[AlterConfigsResource],
    validate_only: bool = False,  # noqa: FBT001, FBT002  by position
) -> Rounds[IncrementalAlterConfigsResponse]:
    """Write the new settings of each resource, or refuse them (KIP-339); with `validate_only`, only judge them."""
    faults = {item.resource: _fault(context, item, resources) for item in resources}
    sound = {config_path(item.resource): item for item in resources if faults[item.resource] is None}
    alterations = {path: partial(_alter_all, item) for path, item in sound.items()}
    if validate_only:
        refused = yield from _check_settings(context, alterations)
    else:
        refused = yield from write_settings(context, "configs", alterations)
    faults |= {sound[path].resource: fault for path, fault in refused.items()}
    return IncrementalAlterConfigsResponse(
        tuple(ResourceError(resource, *fault or ()) for resource, fault in faults.items())
    )


def _fault(
    context: ControllerContext, item: AlterConfigsResource, resources: Sequence[AlterConfigsResource]
) -> Fault | None:
    """Return why an alteration is invalid regardless of the current settings, None if it is valid."""
    resource = item.resource
    fault = resource_fault(context, resource)
    if fault is not None:
        return fault
    if sum(other.resource == resource for other in resources) > 1:
        return ErrorCode.INVALID_REQUEST, "a topic or broker may occur only once in a request"
    names = [config.name for config in item.configs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        return ErrorCode.INVALID_CONFIG, f"{', '.join(twice)} may be altered once, not twice"
    try:
        for config in item.configs:
            _validate(resource, config)
    except InvalidSetting as invalid:
        return ErrorCode.INVALID_CONFIG, str(invalid)
    return None


def _validate(resource: ConfigResource, config: AlterableConfig) -> None:
    if config.operation is ConfigOperation.DELETE:
        return
    setting = _find(resource, config.name)
    setting.parse(config.value)
    if config.operation is not ConfigOperation.SET and setting.kind is not Kind.REPLICAS:
        raise InvalidSetting(f"{config.name} is not a list: set it, do not append or subtract")
    if resource.type is ConfigResourceType.BROKER and resource.name and config.name in DEFAULT_ONLY:
        raise InvalidSetting(f"{config.name} is the same for all brokers: alter the default (--entity-default)")


def _alter_all(item: AlterConfigsResource, settings: dict[str, str]) -> Fault | None:
    try:
        for config in item.configs:
            _alter(settings, item.resource, config)
    except InvalidSetting as invalid:
        return ErrorCode.INVALID_CONFIG, str(invalid)
    return None


def _alter(settings: dict[str, str], resource: ConfigResource, config: AlterableConfig) -> None:
    if config.operation is ConfigOperation.SET:
        settings[config.name] = config.value.strip()
    elif config.operation in {ConfigOperation.APPEND, ConfigOperation.SUBTRACT}:
        current = _find(resource, config.name).parse(settings.pop(config.name, ""))
        value = _merged(str(current), config)
        settings |= {config.name: value} if value else {}
    elif settings.pop(config.name, None) is None:
        # Unknown settings may be deleted if they are set (Kafka's tools may have written them); if not, this raises.
        _find(resource, config.name)


def _merged(current: str, config: AlterableConfig) -> str:
    """Return a list of replicas after appending or subtracting others; nothing can be subtracted from all replicas."""
    before, others = parse_replicas(current), parse_replicas(config.value)
    if config.operation is ConfigOperation.APPEND:
        return ALL_REPLICAS if before is None or others is None else render_replicas(before | others)
    return current if before is None or others is None else render_replicas(before - others)


def _find(resource: ConfigResource, name: str) -> Setting:
    """Return the setting of a name. Raises InvalidSetting, which suggests the nearest alterable one."""
    table = TOPIC_SETTINGS if resource.type is ConfigResourceType.TOPIC else BROKER_SETTINGS
    return MOVE_SETTINGS.get(name) or find(table, name)


# --- writing settings -------------------------------------------------------------------------------------------


def write_settings(
    context: ControllerContext, name: str, alterations: Mapping[str, Alteration]
) -> Rounds[dict[str, Fault]]:
    """Alter the settings at each path, and write them in one multi with their notification, as the round `name`.

    Return the faults of those that are left unchanged. Settings of a topic are written only while it exists.
    """
    faults: dict[str, Fault] = {}
    is_refused = False

    def write(pending: list[str]) -> Rounds[list[str]]:
        nonlocal is_refused
        notices = (yield from _unused_notices(len(pending))) if is_refused else [_NEXT_NOTICE] * len(pending)
        is_refused = True
        steps: dict[str, Step] = {}
        for path, znode, notice in zip(pending, (yield from read(pending)), notices, strict=True):
            step = _step(context, path, znode, alterations[path], notice)
            if isinstance(step, Step):
                steps[path] = step
            else:
                faults[path] = step
        rejected = list[str]()
        stale = yield from commit_each(name, steps, on_rejected=rejected.extend)
        faults.update(dict.fromkeys(rejected, _UNWRITABLE))
        # The context may not know yet that a topic is gone.
        topics = {path: topic for path in stale if (topic := _topic_at(path))}
        there = yield from existing(paths.topic, topics.values())
        faults.update((path, unknown_topic(topic)) for path, topic in topics.items() if topic not in there)
        return [path for path in stale if path not in faults]

    yield from until_none_is_left(name, alterations, write)
    return faults


def _check_settings(context: ControllerContext, alterations: Mapping[str, Alteration]) -> Rounds[dict[str, Fault]]:
    """Return the faults of alterations that `write_settings` would not write."""
    znodes = yield from read(list(alterations))
    judged = {
        path: _step(context, path, znode, alter, _NEXT_NOTICE, is_check=True)
        for (path, alter), znode in zip(alterations.items(), znodes, strict=True)
    }
    return {path: fault for path, fault in judged.items() if not isinstance(fault, Step)}


def _topic_at(path: str) -> str | None:
    """Return the topic whose settings are at a path, None if they are not those of a topic."""
    parent = paths.topic_config("")
    return path.removeprefix(parent) if path.startswith(parent) else None


def _unused_notices(count: int) -> Rounds[list[Create]]:
    """Return notifications without data, with names after all that exist.

    The next name of the sequence may exist: a copied tree has notifications, but its sequence begins again at 0.
    """
    names = yield from children(paths.CONFIG_CHANGES)
    matches = filter(None, map(_NUMBERED.fullmatch, names))
    first = max((int(match[1]) for match in matches), default=-1) + 1
    return [Create(f"{paths.CONFIG_CHANGES}/{_NOTICE}{number:010}") for number in range(first, first + count)]


def _step(
    context: ControllerContext,
    path: str,
    znode: Znode | None,
    alter: Alteration,
    notice: Create,
    *,
    is_check: bool = False,
) -> Step | Fault:
    try:
        before = {} if znode is None else formats.decode_config(path, znode.data)
    except formats.UndecodableZnode as damage:
        return ErrorCode.INVALID_CONFIG, f"{damage}: repair or delete it first"
    settings = dict(before)
    if (fault := alter(settings)) is not None:
        return fault
    data = formats.encode_config(settings)
    entity = path.removeprefix("/config/")
    told = replace(notice, data=formats.encode_config_change(entity))
    topic = _topic_at(path)
    exists = () if topic is None else (Check(paths.topic(topic), ANY_VERSION),)
    writes = (*exists, write_over(znode, path, data), told)
    if (outgrown := _room_fault(context, data, writes)) is not None:
        return ErrorCode.INVALID_CONFIG, outgrown
    if not is_check:
        log.info("settings altered", entity=entity, changed=sorted(dict(before.items() ^ settings.items())))
    return Step(writes=writes)


def _room_fault(context: ControllerContext, settings: bytes, together: Sequence[Op]) -> str | None:
    """Return why settings cannot be written together with something else, None if they can."""
    limits = context.config.request_limits
    if weight_of(together) <= limits.group:
        return None
    beside = weight_of(together) - len(settings)
    return (
        f"the settings would have {len(settings)} bytes, and {limits.text} leaves them "
        f"{limits.group - beside}: give shorter values"
    )


# --- settings of new topics -------------------------------------------------------------------------------------


def new_topic_fault(context: ControllerContext, configs: Sequence[tuple[str, str]]) -> str | None:
    """Return why a new topic cannot have these settings, None if it can. On Kafka's brokers there are more of them."""
    if context.config.kafka:
        defaults = context.kafka.topic_defaults()
        return topic_settings_fault(configs, has_remote_storage=defaults.has_remote_storage)
    try:
        for name, value in configs:
            find(TOPIC_SETTINGS, name).parse(value)
    except InvalidSetting as invalid:
        return str(invalid)
    return None


def new_topic_room_fault(
    context: ControllerContext, name: str, configs: Sequence[tuple[str, str]], create: Create
) -> str | None:
    """Return why a new topic's settings cannot be written together with the topic, None if they can."""
    data = formats.encode_config(dict(configs))
    return _room_fault(context, data, [Create(paths.topic_config(name), data), create])


def new_topic_writes(topics: Mapping[str, Sequence[tuple[str, str]]]) -> Rounds[dict[str, Op]]:
    """Return the write of each new topic's settings, to be placed before the topic's own write in the same multi.

    As in Kafka, a topic without settings gets an empty znode, so that it does not inherit what an earlier topic of the
    same name left behind.
    """
    znodes = yield from read(paths.topic_config(name) for name in topics)
    writes: dict[str, Op] = {}
    for (name, configs), znode in zip(topics.items(), znodes, strict=True):
        path, data = paths.topic_config(name), formats.encode_config(dict(configs))
        writes[name] = Create(path, data) if znode is None else Set(path, data, ANY_VERSION)
    return writes
