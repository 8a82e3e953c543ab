"""The throttles of a rollout's moves: named before they begin, and lifted once they are over.

They are the settings of `klamm reassignment execute --throttle`, which record in the same znodes what was before. The
marks of the moves are written before the one and after the other, so the next controller lifts what this one leaves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from controller.admin import throttle_settings
from controller.admin.throttle_settings import FOLLOWERS, LEADERS, ByTopic, Side
from controller.handlers import config_changes
from controller.handlers.configs import config_path, decode_layer
from controller.model import registrations
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, children, read
from controller.rollout.moves import Move
from transport.errors import ErrorCode, reason_of
from transport.log import get_logger
from transport.messages import UNTHROTTLED, AlterConfigsResource, ConfigResource, ConfigResourceType
from transport.metadata import TopicPartition, number_in
from transport.store import paths

log = get_logger(__name__)

_RATES: Final = (LEADERS.rate_before, FOLLOWERS.rate_before)

Subject = int | str
"""A broker, or a topic by its name."""

Own = Mapping[ConfigResource, Mapping[str, str]]


def begin(context: ControllerContext, moves: Collection[Move], rate: int) -> Rounds[dict[Subject, str]]:
    """Throttle moves, before they begin or in progress.

    Return the live brokers and the topics that cannot be throttled, with the reasons: their moves would copy at full
    speed. A dead broker copies nothing.
    """
    wanted = _replicas_of(move for move in moves if move.adding)
    if rate == UNTHROTTLED or not wanted[FOLLOWERS]:
        return {}
    brokers = {broker for topics in wanted.values() for pairs in topics.values() for _, broker in pairs}
    broker_resources = throttle_settings.brokers_of(brokers)
    topic_resources = throttle_settings.topics_named(set(wanted[FOLLOWERS]) & set(context.topics))
    of_brokers, of_topics = (yield from _own(broker_resources)), (yield from _own(topic_resources))
    slowed = [throttle_settings.slowed(resource, own, wanted, rate) for resource, own in of_brokers.items()]
    named = [throttle_settings.named(resource, own, wanted) for resource, own in of_topics.items()]
    failed = yield from _alter(context, [*slowed, *named])
    unread = {*broker_resources, *topic_resources} - of_brokers.keys() - of_topics.keys()
    failed |= dict.fromkeys(unread, "its settings cannot be read: see the controller's log")
    faults: dict[Subject, str] = {}
    for resource, text in sorted(failed.items(), key=lambda item: item[0].name):
        if resource.type is not ConfigResourceType.BROKER:
            faults[resource.name] = f"topic {resource.name} cannot be throttled: {text}"
        elif registrations.is_alive(context, int(resource.name)):
            faults[int(resource.name)] = f"broker {resource.name} cannot be throttled: {text}"
    return faults


def lift(context: ControllerContext, over: Iterable[TopicPartition]) -> Rounds[bool]:
    """Lift the throttle of moves that are over; return False if some remain."""
    ended = frozenset(over)
    # The settings of a topic that is being deleted go with it.
    names = {tp.topic for tp in ended} & set(context.topics) - set(context.deletions)
    resources = throttle_settings.topics_named(names)
    own = yield from _own(resources)
    changes = [throttle_settings.unnamed(resource, found, ended) for resource, found in own.items()]
    failed = yield from _alter(context, changes)
    return not failed and len(own) == len(resources)


def restore(context: ControllerContext) -> Rounds[bool]:
    """Restore the rates of brokers, except those with other moves in progress that are throttled.

    Return False if some may remain: the settings of a broker cannot be read, or cannot be written.
    """
    names = yield from children(paths.BROKER_CONFIGS)
    brokers = throttle_settings.brokers_of(id_ for name in names if (id_ := number_in(name)) is not None)
    own = yield from _own(brokers)
    slowed = {resource: found for resource, found in own.items() if not set(_RATES).isdisjoint(found)}
    moving = frozenset(context.reassigning)
    topics = yield from _own(throttle_settings.topics_named({tp.topic for tp in moving} if slowed else ()))
    restored = [throttle_settings.restored(resource, found, topics, moving) for resource, found in slowed.items()]
    failed = yield from _alter(context, restored)
    return not failed and len(own) == len(brokers)


def _replicas_of(moves: Iterable[Move]) -> dict[Side, ByTopic]:
    """Return the replicas to throttle: existing ones as leaders, added ones as followers."""
    leading: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    following: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    for move in moves:
        leading[move.topic].update((move.partition, broker) for broker in move.before)
        following[move.topic].update((move.partition, broker) for broker in move.adding)
    sides = ((LEADERS, leading), (FOLLOWERS, following))
    return {side: {topic: frozenset(pairs) for topic, pairs in found.items()} for side, found in sides}


def _own(resources: Iterable[ConfigResource]) -> Rounds[Own]:
    """Read the own settings of topics and brokers; those that cannot be decoded are left out."""
    wanted = list(resources)
    znodes = yield from read(map(config_path, wanted))
    layers = {each: decode_layer("", config_path(each), znode) for each, znode in zip(wanted, znodes, strict=True)}
    return {each: layer.settings for each, layer in layers.items() if layer is not None}


def _alter(context: ControllerContext, changes: Iterable[AlterConfigsResource]) -> Rounds[dict[ConfigResource, str]]:
    """Change settings; return those that could not be, with the reasons."""
    wanted = [change for change in changes if change.configs]
    if not wanted:
        return {}
    answer = yield from config_changes.alter_configs(context, wanted)
    failed = {
        outcome.resource: reason_of(outcome.error, outcome.message)
        for outcome in answer.resources
        if outcome.error is not ErrorCode.NONE
    }
    for resource, text in failed.items():
        log.error("a throttle stays as it was", of=resource.name, fault=text)
    return failed
