"""Brokers that come back with another storage: their replicas are empty, even if the ISRs list them.

A registration carries the id of the broker's storage; the last id of each broker is kept below `/klamm/storage_ids`. A
broker with a different id is first removed from every ISR, then its new id is recorded, and only then may it lead or
follow. If the controller crashes in between, the next one starts over, which is safe: a broker that has not been told
to follow cannot have rejoined an ISR. Registrations without a storage id belong to other kinds of brokers and are
ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from attrs import frozen

from controller.handlers.leadership import write_choices
from controller.model import choosing, elections
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, Step, commit_each, read, until_none_is_left
from transport.log import get_logger
from transport.metadata import NEVER_LED, BrokerRegistration, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import FORBIDDEN, Znode, write_over

log = get_logger(__name__)


@frozen
class Admission:
    """The brokers that `lost` their data, and those of them that are `kept_out` because that cannot be written."""

    lost: frozenset[int]
    kept_out: frozenset[int]


def admit(context: ControllerContext, brokers: Sequence[BrokerRegistration]) -> Rounds[Admission]:
    """Remove brokers that lost their data from every ISR, and record each broker's storage id.

    Must run before the brokers lead or follow anything. A broker that stays in an ISR, or with a loss that cannot be
    recorded, must do neither: the next controller would take an empty log for a full one, or a full one for empty.
    """
    lost, kept_out = set[int](), set[int]()

    def judge(pending: list[BrokerRegistration]) -> Rounds[list[BrokerRegistration]]:
        znodes = yield from read(paths.storage_id(broker.id) for broker in pending)
        known = [_decode(broker, znode) for broker, znode in zip(pending, znodes, strict=True)]
        empty = [b.id for b, storage in zip(pending, known, strict=True) if storage not in (None, b.storage_id)]
        # In this order: once the new id is recorded, nothing shows any more that the data are lost.
        yield from _expel(context, empty)
        remaining = (yield from _still_in_isrs(context, empty)) if empty else frozenset()
        lost.update(empty)
        kept_out.update(remaining)
        steps = {
            broker.id: _record(broker, znode)
            for broker, znode, storage in zip(pending, znodes, known, strict=True)
            if storage != broker.storage_id and broker.id not in remaining
        }
        rejected = list[int]()
        stale = yield from commit_each("storage", steps, on_rejected=rejected.extend)
        kept_out.update(lost.intersection(rejected))
        for broker_id in rejected:
            if broker_id not in lost:
                log.error("a broker that loses its data will not be noticed: its storage is unknown", broker=broker_id)
        return [broker for broker in pending if broker.id in stale]

    yield from until_none_is_left("storage", [broker for broker in brokers if broker.storage_id is not None], judge)
    for broker_id in sorted(kept_out):
        text = "broker set aside: it lost its data, and an ACL hides ISRs that may list it, or its storage id"
        log.error(text, broker=broker_id)
    return Admission(frozenset(lost), frozenset(kept_out))


def _decode(broker: BrokerRegistration, znode: Znode | None) -> str | None:
    """Return the id of the storage that a broker had, None if it is not known."""
    if znode is None:
        return None
    try:
        return formats.decode_storage_id(broker.id, znode.data)
    except formats.UndecodableZnode as fault:
        log.error("a broker's data are trusted: its last storage id cannot be decoded", fault=str(fault))
        return None


def _record(broker: BrokerRegistration, znode: Znode | None) -> Step:
    path, data = paths.storage_id(broker.id), formats.encode_storage_id(broker.storage_id or "")
    return Step(writes=(write_over(znode, path, data),))


def _expel(context: ControllerContext, lost: Collection[int]) -> Rounds[None]:
    """Remove brokers from every ISR, even if that leaves a partition without a leader."""

    def choose(tp: TopicPartition) -> elections.Choice:
        return elections.without_data(choosing.candidate(context, tp), lost)

    held = [tp for tp in context.partitions_on(lost) if tp in context.leadership]
    before = {tp for tp in held if context.leadership[tp].isr}
    for broker_id in lost:
        log.error("a broker came back without its data", broker=broker_id)
    for tp in (yield from write_choices(context, "expel", held, choose)):
        if tp in before and not context.leadership[tp].isr:
            text = "the last replica in the ISR lost its data: only an unclean election can give it a leader"
            log.error(text, partition=str(tp), replicas=context.assignment(tp).replicas)


def _still_in_isrs(context: ControllerContext, lost: Collection[int]) -> Rounds[frozenset[int]]:
    """Return those of the brokers that a stored ISR may still list, as an ACL keeps us from reading or writing it."""
    # An ACL may also hide which partitions a topic has.
    if not context.closed_topics.keys() <= context.topics.keys():
        return frozenset(lost)
    closed = set[int]()
    held = context.partitions_on(lost)
    # What was written is known to be without them.
    doubtful = [tp for tp in held if not set(context.leadership.get(tp, NEVER_LED).isr).isdisjoint(lost)]
    unknown = [tp for tp in held if tp not in context.leadership]
    tps = [*doubtful, *unknown]
    for tp, znode in zip(tps, (yield from read(map(paths.partition_state, tps))), strict=True):
        if znode == FORBIDDEN:
            closed.update(context.assignment(tp).replicas)
        elif znode is not None:
            with suppress(formats.UndecodableZnode):
                closed.update(formats.decode_partition_state(tp, znode.data, znode.stat.version).isr)
    return frozenset(closed.intersection(lost))
