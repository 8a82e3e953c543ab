"""Who is the controller: an ephemeral `/controller`, and an epoch that fences whoever was it before.

The ephemeral and the epoch are written in one multi (KAFKA-6082), and the dataVersion of `/controller_epoch` is checked
by every later write of that controller. A `/controller` of our own session is ours even if we never saw its creation
succeed (KAFKA-13407); one of another session, even with our id, is somebody else's until it expires. Who finds an
office of his own that he does not know takes it under a new epoch: what he wrote and sent before he lost his memory,
and may still be under way, is fenced like anybody else's.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from transport.messages import BrokerEndpoint
from transport.store import formats, paths
from transport.store.protocol import (
    FORBIDDEN,
    Check,
    Conflict,
    ConflictReason,
    Create,
    Delete,
    MetadataStore,
    Set,
    Znode,
    children_of,
)


@frozen
class Won:
    """We are the controller at `epoch`; `version` is that of `/controller_epoch`, the fencing token."""

    epoch: int
    version: int


@frozen
class Standby:
    """Another one is the controller."""

    controller_id: int


class ForeignCluster(Exception):
    """The metadata store belongs to another kind of cluster; the message says by what that shows, and what to do."""


async def refuse_foreign(store: MetadataStore) -> None:
    """Raise ForeignCluster where a live broker or the controller is not of our kind, so that no Kafka estate is seized.

    Our brokers register a listener named KLAMM, and our controllers say where they listen before they stand. Where one
    of ours has ever stood, a holder that does not say so is one of ours as well: the endpoint belongs to the latest
    session of a controller, and may end before an earlier session that still holds `/controller`.
    """
    cure = "give --zookeeper HOST:PORT/CHROOT a chroot that nobody else uses"
    ids = paths.numbers(await children_of(store, paths.BROKER_IDS))
    found = await store.read([paths.broker(id_) for id_ in ids])
    live = {id_: znode for id_, znode in zip(ids, found, strict=True) if znode is not None}
    foreign = [id_ for id_, znode in live.items() if formats.is_foreign(id_, znode.data)]
    # Beside brokers of ours an unreadable registration counts as damaged; without any of ours it may be foreign.
    closed = [id_ for id_, znode in live.items() if znode == FORBIDDEN]
    if closed and not any(map(_is_broker_of_ours, live, live.values())):
        foreign += closed
    if foreign:
        raise ForeignCluster(f"broker {foreign[0]} is not of this kind of cluster (Apache Kafka's, perhaps): {cure}")
    [holder] = await store.read([paths.CONTROLLER])
    if holder is not None and not await _is_ours(store, holder):
        raise ForeignCluster(f"/controller is held by another kind of controller (Apache Kafka's, perhaps): {cure}")


def _is_broker_of_ours(broker_id: int, znode: Znode) -> bool:
    try:
        formats.decode_broker(broker_id, znode.data, znode.stat.czxid)
    except formats.UndecodableZnode:
        return False
    return True


async def _is_ours(store: MetadataStore, holder: Znode) -> bool:
    try:
        formats.decode_controller(holder.data)
    except formats.UndecodableZnode:
        return False
    [have_stood] = await store.read([paths.KLAMM_CONTROLLERS])
    return have_stood is not None


async def elect(store: MetadataStore, controller_id: int, now_ms: int, held: Won | None = None) -> Won | Standby:
    """Become the controller unless there is one, and watch `/controller` either way; `held` is what we are already.

    Raises UndecodableZnode if what is there says neither who is the controller nor which epoch is to follow.
    """
    while True:
        [holder] = await store.read([paths.CONTROLLER], watch=True)
        [epoch] = await store.read([paths.CONTROLLER_EPOCH])
        if holder is not None and holder.stat.ephemeral_owner != store.session_id:
            return Standby(formats.decode_controller(holder.data))
        if epoch is None:
            await _create_epoch(store)
            continue
        found = Won(formats.decode_controller_epoch(epoch.data), epoch.stat.version)
        if holder is not None and found == held:
            return found
        claim = Create(paths.CONTROLLER, formats.encode_controller(controller_id, now_ms), ephemeral=True)
        won = await _claim(store, found, [claim] if holder is None else [])
        if won is not None:
            return won


async def _claim(store: MetadataStore, found: Won, claim: Sequence[Create]) -> Won | None:
    """Raise the epoch, together with `claim`; None if somebody was faster."""
    won = Won(found.epoch + 1, found.version + 1)
    data = formats.encode_controller_epoch(won.epoch)
    try:
        await store.multi([*claim, Set(paths.CONTROLLER_EPOCH, data, found.version)])
    except Conflict:
        return None
    return won


async def _create_epoch(store: MetadataStore) -> None:
    try:
        await store.multi([Create(paths.CONTROLLER_EPOCH, formats.encode_controller_epoch(0))])
    except Conflict as conflict:
        if conflict.reason is not ConflictReason.NODE_EXISTS:
            raise


async def resign(store: MetadataStore, won: Won) -> None:
    """Delete `/controller` if it is still that of this epoch, so that the next is elected at once."""
    try:
        await store.multi([Check(paths.CONTROLLER_EPOCH, won.version), Delete(paths.CONTROLLER)])
    except Conflict:
        return


async def register_endpoint(store: MetadataStore, endpoint: BrokerEndpoint) -> None:
    """Announce where this controller listens, in an ephemeral of the present session.

    That of an earlier session of ours is replaced; a conflict with a live namesake shows at the next election.
    """
    path = paths.controller_endpoint(endpoint.id)
    [found] = await store.read([path])
    if found is not None and found.stat.ephemeral_owner == store.session_id:
        return
    create = Create(path, formats.encode_controller_endpoint(endpoint), ephemeral=True)
    replace = [] if found is None else [Delete(path, found.stat.version)]
    try:
        await store.multi([*replace, create])
    except Conflict:
        await register_endpoint(store, endpoint)
