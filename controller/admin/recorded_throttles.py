"""Throttles of moves in clusters that do not keep what was before them, by a record of it that the caller keeps.

Setting a throttle has two steps: what it changes is worked out with the record, and is changed once the record is safe.
Lifting it takes back what the record says was added, nothing else. Kafka takes and tells the settings of a broker only
at this broker, so the rates of one that is not alive stay, and so does its part of the record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from attrs import evolve, frozen

from controller.admin.active_controller import OutcomeUnknown
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_record import ListBefore, MoveRecord, Orders, Pairs, RateBefore, out_of_order, pairs_of
from controller.admin.move_throttles import Alter, alter, own_settings, replicas_of
from controller.admin.throttle_settings import (
    FOLLOWERS,
    LEADERS,
    NONE_BEFORE,
    ByTopic,
    Own,
    Side,
    brokers_of,
    delete,
    restored,
    set_to,
    slowed,
    topics_named,
)
from transport.dynamic_configs import parse_replicas, render_replicas
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    PartitionState,
)
from transport.metadata import TopicPartition
from transport.wire import WireError

SIDES = (LEADERS, FOLLOWERS)
Settings = Mapping[ConfigResource, Own]


@frozen
class Throttling:
    """The changes that throttle moves, and the record that has to be safe before they are made.

    `absent` are the brokers that would be slowed but do not answer.
    """

    changes: Sequence[AlterConfigsResource]
    record: MoveRecord
    absent: tuple[int, ...] = ()


@frozen
class Lifted:
    """The outcome of lifting throttles.

    `left` is the record of what is still to be restored, None if there is nothing. `absent` are brokers that do not
    answer and keep a rate of the moves, `in_use` those that keep it for other moves in progress.
    """

    is_changed: bool
    left: MoveRecord | None
    absent: tuple[int, ...] = ()
    in_use: tuple[int, ...] = ()


async def throttling(
    admin: ClusterAdmin,
    states: Iterable[PartitionState],
    targets: Mapping[TopicPartition, tuple[int, ...]],
    rate: int,
    record: MoveRecord,
    only: Collection[int] | None = None,
) -> Throttling:
    """Return how to throttle moves to `rate` bytes per second, on all brokers or `only` some.

    Raises ApiError, WireError.
    """
    wanted = replicas_of(states, targets)
    topics = await own_settings(admin, topics_named({topic for found in wanted.values() for topic in found}))
    named = {b for found in wanted.values() for pairs in found.values() for _, b in pairs}
    named = named if only is None else named.intersection(only)
    brokers = await own_settings(admin, brokers_of(named))
    lists = dict(record.lists)
    for resource, own in topics.items():
        lists |= _lists(resource.name, own, wanted, record)
    rates = dict(record.rates)
    for resource, own in brokers.items():
        rates |= _rates(int(resource.name), own, wanted, rate, record)
    changes = [*(_named(one, own, lists) for one, own in topics.items())]
    changes += [slowed(one, own, wanted, rate) for one, own in brokers.items()]
    absent = tuple(sorted(named - {int(one.name) for one in brokers}))
    return Throttling(changes, evolve(record, lists=lists, rates=rates), absent)


async def lift(
    admin: ClusterAdmin,
    over: Collection[TopicPartition],
    record: MoveRecord,
    targets: Orders = MappingProxyType({}),
    change: Alter = alter,
) -> Lifted:
    """Remove the throttles of those moves that are over, as recorded. Raises ApiError, OutcomeUnknown, WireError.

    By an empty record, rates are restored whose brokers say themselves that moves gave them. `targets` are those of the
    moves, as far as they are known: a partition that has reached its own needs no order restored.
    """
    moving = {move.tp for move in await admin.list_partition_reassignments()}
    if record.replicas and not record.throttles:
        return Lifted(is_changed=False, left=record if await _is_pending(admin, moving, record, targets) else None)
    ended = frozenset(over) - moving
    names = {tp.topic for tp in ended | moving} | {topic for topic, _ in record.lists}
    topics = await own_settings(admin, topics_named(names))
    unnamed = [each for one, own in topics.items() if (each := _unnamed(one, own, ended, record)).configs]
    if unnamed:
        await change(admin, unnamed)
    lists = {where: kept for where, one in record.lists.items() if (kept := _left(where, one, ended, topics)).added}
    changed, absent, in_use = await _free(admin, topics, moving, record, change)
    rates = {where: one for where, one in record.rates.items() if where[0] in absent or where in in_use}
    left = MoveRecord(record.replicas, lists, rates)
    is_needed = left.throttles or await _is_pending(admin, moving, record, targets)
    busy = tuple(sorted({broker for broker, _ in in_use & rates.keys()}))
    return Lifted(changed or bool(unnamed), left if is_needed else None, tuple(sorted(absent)), busy)


async def _free(
    admin: ClusterAdmin, topics: Settings, moving: Collection[TopicPartition], record: MoveRecord, change: Alter
) -> tuple[bool, set[int], set[tuple[int, str]]]:
    """Restore the rates of all live brokers that no move in progress needs.

    Return whether there was one; the brokers of the record that do not answer; the rates that are still needed.
    """
    live = {broker.id for broker in (await admin.read_metadata(())).brokers}
    brokers = await own_settings(admin, brokers_of(live))
    absent = {broker for broker, _ in record.rates} - {int(one.name) for one in brokers}
    in_use: set[tuple[int, str]] = set()
    is_changed = False
    for one, own in brokers.items():
        rates = _with_recorded(restored(one, own, topics, moving), own, record)
        gone = {config.name for config in rates.configs}
        in_use |= {(int(one.name), s.rate) for s in SIDES if s.rate_before in own and s.rate_before not in gone}
        if rates.configs and await _restore(admin, rates, change):
            is_changed = True
        elif rates.configs:
            absent.add(int(one.name))
    return is_changed, absent, in_use


async def _restore(admin: ClusterAdmin, rates: AlterConfigsResource, change: Alter) -> bool:
    """Restore the rates of a broker; return False if it does not answer."""
    try:
        await change(admin, [rates])
    except (OutcomeUnknown, WireError):
        return False
    except ApiError as error:
        if error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
            raise
        return False
    return True


async def _is_pending(
    admin: ClusterAdmin, moving: Collection[TopicPartition], record: MoveRecord, targets: Orders
) -> bool:
    """Return whether replicas before the moves are still needed: of moves in progress, or to restore their order."""
    if not record.replicas.keys().isdisjoint(moving):
        return True
    states = (await admin.read_metadata(sorted({tp.topic for tp in record.replicas}))).partitions
    left = [state for state in states if state.replicas != targets.get(state.tp)]
    return bool(out_of_order(left, record.replicas))


# --- what is recorded and changed: pure ---------------------------------------------------------------------------


def _lists(
    topic: str, own: Own, wanted: Mapping[Side, ByTopic], record: MoveRecord
) -> dict[tuple[str, str], ListBefore]:
    """Return what was in a topic's lists before, and what is added; what an earlier execution added still counts."""
    found = {}
    for side in SIDES:
        there = parse_replicas(own.get(side.replicas, ""))
        if there is None:
            continue
        where = (topic, side.replicas)
        ours = record.added(*where) & there
        added = wanted[side].get(topic, frozenset()) - there | ours
        if added:
            before = record.lists[where].before if ours else own.get(side.replicas)
            found[where] = ListBefore(before, added)
    return found


def _rates(
    broker: int, own: Own, wanted: Mapping[Side, ByTopic], rate: int, record: MoveRecord
) -> dict[tuple[int, str], RateBefore]:
    """Return the rates of a broker before; those that moves gave it are told by its own settings, or the record."""
    found = {}
    for side, topics in wanted.items():
        if not any(b == broker for pairs in topics.values() for _, b in pairs):
            continue
        where, now = (broker, side.rate), own.get(side.rate)
        marked, earlier = own.get(side.rate_before), record.rates.get(where)
        before = now
        if marked is not None:
            before = None if marked == NONE_BEFORE else marked
        elif earlier is not None and earlier.given == now:
            before = earlier.before
        found[where] = RateBefore(before, str(rate))
    return found


def _named(resource: ConfigResource, own: Own, lists: Mapping[tuple[str, str], ListBefore]) -> AlterConfigsResource:
    """Add replicas to a topic's lists."""
    configs = []
    for side in SIDES:
        found = lists.get((resource.name, side.replicas))
        new = frozenset() if found is None else found.added - _there(own, side)
        if new:
            configs.append(AlterableConfig(side.replicas, ConfigOperation.APPEND, render_replicas(new)))
    return AlterConfigsResource(resource, tuple(configs))


def _unnamed(
    resource: ConfigResource, own: Own, ended: Collection[TopicPartition], record: MoveRecord
) -> AlterConfigsResource:
    """Take what was added to a topic's lists away; a list that was not there before and gets empty is deleted."""
    configs = []
    for side in SIDES:
        there = _there(own, side)
        over = pairs_of(record.added(resource.name, side.replicas), resource.name, ended) & there
        if not over:
            continue
        if over == there and record.lists[resource.name, side.replicas].before is None:
            configs.append(delete(side.replicas))
        else:
            configs.append(AlterableConfig(side.replicas, ConfigOperation.SUBTRACT, render_replicas(over)))
    return AlterConfigsResource(resource, tuple(configs))


def _there(own: Own, side: Side) -> Pairs:
    return parse_replicas(own.get(side.replicas, "")) or frozenset()


def _left(where: tuple[str, str], one: ListBefore, ended: Collection[TopicPartition], topics: Settings) -> ListBefore:
    """Return what is still to be taken away from a list; nothing of a topic that was deleted."""
    topic, _ = where
    is_there = any(resource.name == topic for resource in topics)
    return evolve(one, added=one.added - pairs_of(one.added, topic, ended) if is_there else frozenset())


def _with_recorded(change: AlterConfigsResource, own: Own, record: MoveRecord) -> AlterConfigsResource:
    """Restore the rates that a broker has from moves although its own settings do not say so any more."""
    configs = list(change.configs)
    for side in SIDES:
        found = record.rates.get((int(change.resource.name), side.rate))
        if found is None or side.rate_before in own or own.get(side.rate) != found.given:
            continue
        if found.before != found.given:
            configs.append(delete(side.rate) if found.before is None else set_to(side.rate, found.before))
    return AlterConfigsResource(change.resource, tuple(configs))
