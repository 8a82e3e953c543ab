"""Brokers that come back with another storage: their replicas are empty, even if the ISRs list them.

A registration carries the id of the broker's storage; the last id of each broker is kept below `/klamm/storage_ids`. A
broker with a different id is first removed from every ISR, then its new id is recorded, and only then may it lead or
follow. If the controller crashes in between, the next one starts over, which is safe: a broker that has not been told
to follow cannot have rejoined an ISR. Registrations without a storage id belong to other kinds of brokers and are
ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from controller.handlers.leadership import write_choices
from controller.model import choosing, elections
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, Step, commit_each, read, unanswered_rejections, until_none_is_left
from transport.log import get_logger
from transport.metadata import BrokerRegistration, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Znode, write_over

log = get_logger(__name__)


def admit(context: ControllerContext, brokers: Sequence[BrokerRegistration]) -> Rounds[frozenset[int]]:
    """Remove brokers that lost their data from every ISR, and record each broker's storage id.

    Return the ids of those that lost their data. Must run before the brokers lead or follow anything.
    """
    empty = set[int]()

    def judge(pending: list[BrokerRegistration]) -> Rounds[list[BrokerRegistration]]:
        znodes = yield from read(paths.storage_id(broker.id) for broker in pending)
        known = [_decode(broker, znode) for broker, znode in zip(pending, znodes, strict=True)]
        lost = [b.id for b, storage in zip(pending, known, strict=True) if storage not in (None, b.storage_id)]
        # In this order: once the new id is recorded, nothing shows any more that the data are lost.
        yield from _expel(context, lost)
        empty.update(lost)
        steps = {
            broker.id: _record(broker, znode)
            for broker, znode, storage in zip(pending, znodes, known, strict=True)
            if storage != broker.storage_id
        }
        stale = yield from commit_each("storage", steps, on_rejected=unanswered_rejections)
        return [broker for broker in pending if broker.id in stale]

    yield from until_none_is_left("storage", [broker for broker in brokers if broker.storage_id is not None], judge)
    return frozenset(empty)


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
