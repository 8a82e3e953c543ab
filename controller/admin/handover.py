"""Handing the office over between Kafka's controllers and ours, through the metadata store alone.

Both ways end with a controller in office: an operator who has waited for the end knows who governs the cluster.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio
from attrs import frozen

from controller.model.kafka_office import found, obstacle, release_ops
from transport.store import formats, paths
from transport.store.kafka_checks import Record, records
from transport.store.kafka_office import (
    OfficeZnodes,
    Writer,
    encode_mark,
    read_office,
    registration_of,
)
from transport.store.protocol import Conflict, Create, Delete, MetadataStore, Op, Set, StoreEvent, children_of

OBEDIENCE_SECONDS: Final = 10.0
"""The time for a controller in office to obey a release, before it is deposed."""


class HandoverRefused(Exception):
    """The office cannot be handed over, or was not within the time; one line that says why and what to do."""


@frozen
class Release:
    """The end of a release: Kafka's controller, and ours before it.

    Before a release, Kafka's controller is there only if an earlier release put it in office.
    """

    kafka_controller: int | None
    our_id: int | None
    named: dict[str, tuple[int, ...]]
    """The partitions with a replica on one of our controllers, by topic."""


@frozen
class TakeOverCheck:
    """The controllers of ours that an order to take over would reach, and Kafka's controller if one is in office."""

    candidates: tuple[int, ...]
    kafka_controller: int | None


@frozen
class TakeOver:
    """The end of an order: our controller in office, its epoch, and whether it was in office before.

    `findings` are what it found about its settings and took office in spite of.
    """

    controller_id: int
    epoch: int
    is_old: bool
    findings: tuple[str, ...] = ()


async def release(
    store: MetadataStore,
    now_ms: int,
    timeout: float,  # noqa: ASYNC109  it raises its own
    announced: Callable[[], None] = lambda: None,
) -> Release:
    """Let Kafka's brokers elect a controller of theirs, and wait for it for up to `timeout` seconds.

    What is written first, before `announced` is called, keeps our controllers from standing for election until the next
    order. One in office resigns; one that does not is deposed, and one that is dead need not be there. A release may be
    repeated.

    Raises HandoverRefused if another kind of controller is in office, or if no broker takes office.
    """
    # A caller that is cancelled while this is being written learns from `announced` that it was.
    with trio.CancelScope(shield=True):
        our_id = await _announce_release(store, now_ms)
    announced()
    with trio.move_on_after(OBEDIENCE_SECONDS):
        await _until(store, _has_resigned)
    await _depose(store)
    with trio.move_on_after(timeout):
        znodes = await _until(store, _is_held)
        assert znodes.holder is not None
        if znodes.holder.writer is not Writer.KAFKA:
            raise HandoverRefused(f"the office is released, but {_foreign(znodes)}")
        return Release(znodes.holder.controller_id, our_id, await topics_that_name(store, await _ours(store, our_id)))
    raise HandoverRefused(
        f"the office is released, but no broker of Kafka's has taken it within {timeout:g} s:"
        " see whether a broker is alive; the first one elects itself"
    )


async def _has_resigned(znodes: OfficeZnodes) -> bool:
    return znodes.lock is None or not _is_ours(znodes)


async def _is_held(znodes: OfficeZnodes) -> bool:
    return znodes.holder is not None


async def _announce_release(store: MetadataStore, now_ms: int) -> int | None:
    """Write `/klamm/released`, withdraw an order, and return the id of our controller in `/controller`, if any."""
    while True:
        znodes = await read_office(store)
        if _is_kafkas_by_release(znodes):
            return None
        ops: list[Op] = [] if znodes.order is None else [Delete(paths.TAKE_OVER, znodes.order)]
        if not znodes.is_released:
            ops.append(Create(paths.RELEASED, encode_mark(now_ms)))
        if await _did(store, ops) is not None:
            return None if znodes.holder is None else znodes.holder.controller_id


def _is_kafkas_by_release(znodes: OfficeZnodes) -> bool:
    """Return whether Kafka's controller is in office after a release. Raises HandoverRefused if none can begin."""
    if znodes.holder is not None and not _is_ours(znodes):
        if znodes.is_released and znodes.holder.writer is Writer.KAFKA:
            return True
        raise HandoverRefused(f"{_foreign(znodes)}: there is nothing to release")
    if not znodes.epoch:
        raise HandoverRefused("no controller has ever been in office here: there is nothing to release")
    return False


async def check_release(store: MetadataStore) -> Release:
    """Return what a release would begin with; nothing is written. Raises HandoverRefused."""
    znodes = await read_office(store)
    if _is_kafkas_by_release(znodes):
        assert znodes.holder is not None
        return Release(znodes.holder.controller_id, None, await topics_that_name(store, await _ours(store, None)))
    our_id = None if znodes.holder is None else znodes.holder.controller_id
    return Release(None, our_id, await topics_that_name(store, await _ours(store, our_id)))


def _foreign(znodes: OfficeZnodes) -> str:
    assert znodes.holder is not None
    return f"controller {znodes.holder.controller_id} of {znodes.holder.writer.value}'s own is in office"


def _is_ours(znodes: OfficeZnodes) -> bool:
    return znodes.holder is not None and znodes.holder.writer is Writer.KLAMM


async def _depose(store: MetadataStore) -> None:
    """Remove our `/controller` if it is still there; whoever holds the lock is fenced by a higher epoch."""
    while True:
        znodes = await read_office(store)
        if not _is_ours(znodes):
            return
        ops = release_ops(znodes)
        if znodes.lock is not None:
            epoch = formats.encode_controller_epoch(found(znodes).epoch + 1)
            fence = Set(paths.CONTROLLER_EPOCH, epoch, znodes.epoch_version)
            ops = (*await registration_of(store, znodes.lock), *ops, fence)
        if await _did(store, ops) is not None:
            return


async def _ours(store: MetadataStore, our_id: int | None) -> set[int | None]:
    """Return the ids of Klamm's controllers that have been in office, without those that brokers have now."""
    earlier = paths.numbers(await children_of(store, paths.CONTROLLER_IDS))
    return {our_id, *earlier}.difference(paths.numbers(await children_of(store, paths.BROKER_IDS)))


async def topics_that_name(store: MetadataStore, ids: Collection[int | None]) -> dict[str, tuple[int, ...]]:
    """Return the partitions with a replica on one of these ids, by topic. Undecodable topics are left out."""
    names = await children_of(store, paths.TOPICS)
    named: dict[str, tuple[int, ...]] = {}
    for name, znode in zip(names, await store.read([paths.topic(name) for name in names]), strict=True):
        if znode is None:
            continue
        try:
            topic = formats.decode_topic(name, znode.data)
        except formats.UndecodableZnode:
            continue
        partitions = tuple(number for number, a in topic.partitions.items() if not set(a.replicas).isdisjoint(ids))
        if partitions:
            named[name] = partitions
    return named


# --- taking over ------------------------------------------------------------------------------------------------


async def take_over(
    store: MetadataStore,
    now_ms: int,
    timeout: float,  # noqa: ASYNC109  it raises its own
    *,
    is_forced: bool = False,
) -> TakeOver:
    """Order one of our running controllers to take office from Kafka's, and wait for it for up to `timeout` seconds.

    Each controller first checks its settings against the brokers. If all of them find reasons against it, and the order
    is not forced, this ends with the reasons. An order that nobody carries out in time is withdrawn. Raises
    HandoverRefused.
    """
    before = await read_office(store)
    if _is_taken(before):
        return _taken(before, is_old=True)
    ours = await _candidates(store, before)
    async with _ordered(store, now_ms, is_forced=is_forced) as order_zxid:
        with trio.move_on_after(timeout):
            return await _carried_out(store, order_zxid)
    raise HandoverRefused(
        f"no controller took office within {timeout:g} s, and the order is withdrawn: the log of"
        f" {_listed(ours)} says why"
    )


async def check_take_over(store: MetadataStore) -> TakeOver | TakeOverCheck:
    """Return our controller if one is in office, or else where an order would go; nothing is written.

    Each controller checks its own settings only when it has the order. Raises HandoverRefused.
    """
    znodes = await read_office(store)
    if _is_taken(znodes):
        return _taken(znodes, is_old=True)
    candidates = paths.numbers(await _candidates(store, znodes))
    is_kafkas = znodes.holder is not None and znodes.holder.writer is Writer.KAFKA
    return TakeOverCheck(tuple(candidates), znodes.holder.controller_id if znodes.holder and is_kafkas else None)


def _is_taken(znodes: OfficeZnodes) -> bool:
    return znodes.lock is not None and _is_ours(znodes) and not znodes.is_released


async def _candidates(store: MetadataStore, znodes: OfficeZnodes) -> Sequence[str]:
    """Return our controllers that run. Raises HandoverRefused if none of them may ever take office."""
    if reason := obstacle(znodes):
        raise HandoverRefused(reason)
    ours = await children_of(store, paths.KLAMM_CONTROLLERS)
    if not ours:
        raise HandoverRefused("no controller of Klamm's is running: start one with `klamm controller run --kafka`")
    return ours


async def _carried_out(store: MetadataStore, order_zxid: int) -> TakeOver:
    """Wait for the end of an order. Raises HandoverRefused if all of our controllers refuse to carry it out."""
    refused: dict[int, Record] = {}

    async def is_over(znodes: OfficeZnodes) -> bool:
        if znodes.lock is not None and _is_ours(znodes):
            return True
        there = await records(store, watch=True)
        about_this = {id_: one for id_, one in there.items() if one is not None and one.order_zxid == order_zxid}
        refused.update({id_: one for id_, one in about_this.items() if one.is_refused})
        return bool(there) and refused.keys() >= there.keys()

    znodes = await _until(store, is_over)
    if znodes.lock is not None and _is_ours(znodes):
        own = (await records(store)).get(znodes.lock.controller_id)
        findings = own.lines if own is not None and own.order_zxid == order_zxid else ()
        return _taken(znodes, findings=findings)
    ids_by_reason: dict[str, list[str]] = {}
    for id_, one in sorted(refused.items()):
        ids_by_reason.setdefault("; ".join(one.lines), []).append(str(id_))
    reasons = [f"{_listed(ids)}: {reason}" for reason, ids in ids_by_reason.items()]
    raise HandoverRefused(f"the order is withdrawn, no controller may take office. {'. '.join(reasons)} (see --force)")


def _taken(znodes: OfficeZnodes, *, is_old: bool = False, findings: tuple[str, ...] = ()) -> TakeOver:
    assert znodes.lock is not None
    return TakeOver(znodes.lock.controller_id, found(znodes).epoch, is_old, findings)


def _listed(ids: Sequence[str]) -> str:
    return f"controller {ids[0]}" if len(ids) == 1 else f"controllers {', '.join(ids)}"


@asynccontextmanager
async def _ordered(store: MetadataStore, now_ms: int, *, is_forced: bool) -> AsyncIterator[int]:
    """Keep an order for the block, in place of a release; what is left of it at the end is withdrawn.

    Returns the zxid of the order.
    """
    while True:
        znodes = await read_office(store)
        old = () if znodes.order is None else (Delete(paths.TAKE_OVER, znodes.order),)
        release = (Delete(paths.RELEASED),) if znodes.is_released else ()
        # An order that is being written when the caller is cancelled has to be withdrawn as well.
        with trio.CancelScope(shield=True):
            order = Create(paths.TAKE_OVER, encode_mark(now_ms, is_forced=is_forced))
            order_zxid = await _did(store, (*old, *release, order))
        if order_zxid is not None:
            break
    try:
        yield order_zxid
    finally:
        again = (Create(paths.RELEASED, encode_mark(now_ms)),) if znodes.is_released else ()
        with trio.CancelScope(shield=True):
            # Without an order to delete, somebody has carried it out.
            await _did(store, (Delete(paths.TAKE_OVER), *again))


# --- both ways --------------------------------------------------------------------------------------------------


async def _did(store: MetadataStore, ops: Sequence[Op]) -> int | None:
    """Commit operations; return the zxid, None if another write came first."""
    try:
        return (await store.multi(ops)).zxid
    except Conflict:
        return None


async def _until(store: MetadataStore, condition: Callable[[OfficeZnodes], Awaitable[bool]]) -> OfficeZnodes:
    """Return the decisive znodes as soon as they fulfil a condition, which may watch others."""
    news = trio.Event()

    def on_event(_: StoreEvent) -> None:
        news.set()

    unsubscribe = store.subscribe(on_event)
    try:
        while True:
            news = trio.Event()
            znodes = await read_office(store, watch=True)
            if await condition(znodes):
                return znodes
            await news.wait()
    finally:
        unsubscribe()
