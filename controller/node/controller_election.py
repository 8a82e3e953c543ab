"""Controller election: an ephemeral `/controller`, and an epoch that fences every earlier controller.

The ephemeral and the epoch are written in one multi (KAFKA-6082), and every later write of that controller checks the
dataVersion of `/controller_epoch`. A `/controller` owned by our session is ours even if we never saw its creation
succeed (KAFKA-13407); one owned by another session, even with our id, belongs to another controller until it expires. A
controller that finds a `/controller` of its session without holding the office takes office under a new epoch, which
fences the writes and requests of its own earlier office that may still be in flight. The epoch is read before
`/controller`: whoever is elected in between raises it, so that a claim made on what was read is refused.
"""

from __future__ import annotations

from controller.model.election_results import Standby, Won
from transport.messages import BrokerEndpoint
from transport.store import formats, paths
from transport.store.kafka_office import Writer, decode_holder
from transport.store.protocol import (
    FORBIDDEN,
    Check,
    Conflict,
    ConflictReason,
    Create,
    Delete,
    MetadataStore,
    Op,
    Set,
    Znode,
    children_of,
)


class ForeignCluster(Exception):
    """The metadata store belongs to another kind of cluster; the message gives the evidence and the remedy."""


async def refuse_foreign(store: MetadataStore, *, is_broker: bool = False) -> None:
    """Raise ForeignCluster if a live broker or the controller is not of our kind, to avoid seizing a Kafka cluster.

    Who asks `is_broker`, or else a controller.

    Our brokers register a listener named KLAMM, and our controllers register their endpoint before they stand for
    election. Once one of ours has stood here, a holder of `/controller` counts as ours even without an endpoint: the
    endpoint belongs to a controller's latest session and may end before an earlier session that still holds
    `/controller`.
    """
    cure = "give --zookeeper HOST:PORT/CHROOT a chroot that nobody else uses"
    ids = paths.numbers(await children_of(store, paths.BROKER_IDS))
    found = await store.read([paths.broker(id_) for id_ in ids])
    live = {id_: znode for id_, znode in zip(ids, found, strict=True) if znode is not None}
    foreign = [id_ for id_, znode in live.items() if formats.is_foreign(id_, znode.data)]
    # An unreadable registration is taken for damage if brokers of ours are alive; otherwise it may be foreign.
    closed = [id_ for id_, znode in live.items() if znode == FORBIDDEN]
    if closed and not any(map(is_broker_of_ours, live, live.values())):
        foreign += closed
    if foreign:
        raise ForeignCluster(f"broker {foreign[0]} is not of this kind of cluster (Apache Kafka's, perhaps): {cure}")
    [holder] = await store.read([paths.CONTROLLER])
    if holder is not None and is_among_kafka(holder):
        remedy = cure if is_broker else "start this controller with --kafka"
        raise ForeignCluster(f"/controller governs Apache Kafka's brokers here: {remedy}")
    if holder is not None and not await _is_ours(store, holder):
        raise ForeignCluster(f"/controller is held by another kind of controller (Apache Kafka's, perhaps): {cure}")


def is_broker_of_ours(broker_id: int, znode: Znode) -> bool:
    """Return whether a registration has a listener of our own protocol."""
    try:
        formats.decode_broker(broker_id, znode.data, znode.stat.czxid)
    except formats.UndecodableZnode:
        return False
    return True


def is_among_kafka(holder: Znode) -> bool:
    """Return whether `/controller` is that of one of ours among Kafka's brokers."""
    try:
        return decode_holder(holder).writer is Writer.KLAMM
    except formats.UndecodableZnode:
        return False


async def _is_ours(store: MetadataStore, holder: Znode) -> bool:
    try:
        formats.decode_controller(holder.data)
    except formats.UndecodableZnode:
        return False
    [have_stood] = await store.read([paths.KLAMM_CONTROLLERS])
    return have_stood is not None


async def elect(store: MetadataStore, controller_id: int, now_ms: int, held: Won | None = None) -> Won | Standby:
    """Become the controller unless there is one, and watch `/controller` either way; `held` is the office we hold.

    Raises UndecodableZnode if `/controller` or `/controller_epoch` cannot be decoded.
    """
    while True:
        [epoch] = await store.read([paths.CONTROLLER_EPOCH])
        [holder] = await store.read([paths.CONTROLLER], watch=True)
        if holder is not None and holder.stat.ephemeral_owner != store.session_id:
            return Standby(formats.decode_controller(holder.data))
        if epoch is None:
            await create_epoch(store)
            continue
        # `/controller` does not exist or is ours. If the epoch is the one that we hold, nothing has changed.
        found = Won(formats.decode_controller_epoch(epoch.data), epoch.stat.version)
        if holder is not None and found == held:
            return found
        claim: Op = Create(paths.CONTROLLER, formats.encode_controller(controller_id, now_ms), ephemeral=True)
        if holder is not None:
            claim = Check(paths.CONTROLLER, holder.stat.version)
        won = await _claim(store, found, claim)
        if won is not None:
            return won


async def _claim(store: MetadataStore, found: Won, claim: Op) -> Won | None:
    """Increment the epoch, together with `claim`; return None if another write came first."""
    won = Won(found.epoch + 1, found.version + 1)
    data = formats.encode_controller_epoch(won.epoch)
    try:
        await store.multi([claim, Set(paths.CONTROLLER_EPOCH, data, found.version)])
    except Conflict:
        return None
    return won


async def create_epoch(store: MetadataStore) -> None:
    """Create `/controller_epoch` with the epoch before the first election, unless it exists."""
    try:
        await store.multi([Create(paths.CONTROLLER_EPOCH, formats.encode_controller_epoch(0))])
    except Conflict as conflict:
        if conflict.reason is not ConflictReason.NODE_EXISTS:
            raise


async def resign(store: MetadataStore, won: Won) -> None:
    """Delete `/controller` if the epoch is still ours, so that the next controller is elected at once."""
    try:
        await store.multi([Check(paths.CONTROLLER_EPOCH, won.version), Delete(paths.CONTROLLER)])
    except Conflict:
        return


async def register_endpoint(store: MetadataStore, endpoint: BrokerEndpoint) -> None:
    """Publish this controller's address in an ephemeral znode of the current session.

    The ephemeral of another session under our id is replaced. If that is a live controller with the same id, the
    conflict shows at the next election.
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
