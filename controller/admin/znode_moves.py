"""Moving replicas in clusters led by Apache Kafka's own controller: through znodes alone, with Kafka doing the moves.

A request is the znode `/admin/reassign_partitions`. Kafka notices its creation, and removes the entries that are
complete or invalid. The progress of a move is in the znodes of topics and partitions. Kafka does not validate such a
request (it would begin a move to a dead broker), so it is validated here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Final, TypeVar

import orjson
import trio
from attrs import frozen

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.reassignments import ReassignmentDescriptions, naming_dead
from controller.admin.visibility import WHOLE, Visibility
from controller.model.faults import outgrown, partition_fault, target_fault
from controller.model.reassignment import reassign_to
from transport import addresses, messages
from transport.errors import ApiError, ErrorCode, Fault
from transport.metadata import NEVER_LED, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.cluster_id import ClusterId
from transport.store.commit import commit_chunk
from transport.store.kafka_office import Writer, decode_holder
from transport.store.protocol import ConnectionLost, Create, MetadataStore, SessionExpired, children_of
from transport.store.requests import MAX_GROUP_BYTES, weight_of
from transport.store.watched import WatchedZnodes

T = TypeVar("T")

RETRY_SECONDS: Final = 0.2
NO_CANCEL: Final = "Kafka's controller takes no cancel through ZooKeeper: use Kafka's tools with --bootstrap-server"


async def is_led_by_kafka(store: MetadataStore) -> bool:
    """Return whether another kind of controller is active or, if none is, live brokers of another kind expect one.

    Only our controllers register an endpoint. Raises StoreError, or UndecodableZnode if `/controller` is undecodable.
    """
    [holder] = await store.read([paths.CONTROLLER])
    if holder is not None:
        # Among Kafka's brokers ours outlives its process, and its endpoint.
        if decode_holder(holder).writer is Writer.KLAMM:
            return False
        endpoint = paths.controller_endpoint(formats.decode_controller(holder.data))
        return await store.read([endpoint]) == [None]
    ids = paths.numbers(await children_of(store, paths.BROKER_IDS))
    found = await store.read([paths.broker(id_) for id_ in ids])
    return any(znode is not None and formats.is_foreign(id_, znode.data) for id_, znode in zip(ids, found, strict=True))


@frozen
class ZnodeMoves:
    """Does through znodes what `AdminClient` does for moves through the controller. Open one with `open_znode_moves`.

    Each call retries after a lost connection, for up to `timeout` seconds.
    """

    _store: MetadataStore
    _znodes: WatchedZnodes
    _timeout: float

    async def alter_partition_reassignments(
        self, partitions: Sequence[messages.ReassignablePartition]
    ) -> messages.AlterPartitionReassignmentsResponse:
        """Let Kafka begin reassignments: all valid ones form one request.

        Raises ApiError: REASSIGNMENT_IN_PROGRESS while there is another request, because Kafka takes one at a time, or
        INVALID_REQUEST for a request that is too large for ZooKeeper.
        """
        names = tuple(dict.fromkeys(item.topic for item in partitions))
        topics = await self._retried(lambda: self._topics(names))
        live = {broker.id for broker in await self._retried(self._brokers)}
        deleted = await self._retried(self._being_deleted)
        judged = {item.tp: _fault(item, topics, live, deleted) for item in partitions}
        targets = {item.tp: item.replicas for item in partitions if item.replicas and judged[item.tp] is None}
        judged |= outgrown(topics, targets)
        new = {tp: t for tp, t in targets.items() if judged[tp] is None and not _is_there(topics, tp, t)}
        if new:
            await self._request(new)
        faults = ((tp, fault or (ErrorCode.NONE, "")) for tp, fault in judged.items())
        return messages.AlterPartitionReassignmentsResponse(
            tuple(messages.PartitionError(*tp, *fault) for tp, fault in faults)
        )

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[messages.OngoingReassignment, ...]:
        """Return the reassignments in progress, and those requested, of all partitions or of those named."""
        return await self._retried(lambda: self._list(partitions))

    async def describe_reassignments(self) -> ReassignmentDescriptions:
        """Return the progress of reassignments as shown by the ISRs: ZooKeeper has neither sizes nor times."""
        moves = await self.list_partition_reassignments()
        live = {broker.id for broker in await self._retried(self._brokers)} if moves else set[int]()
        described = tuple(naming_dead(_described(move), live) for move in moves)
        return ReassignmentDescriptions.of(messages.DescribeReassignmentsResponse(described), None)

    async def visibility(
        self,
        others: Mapping[str, int] = MappingProxyType({}),  # noqa: ARG002  as others have it
        *,
        settings: bool = False,  # noqa: ARG002  as others have it
    ) -> Visibility:
        """Return that all of the cluster is visible: whoever may read its znodes sees it whole."""
        await trio.lowlevel.checkpoint()
        return WHOLE

    async def cluster_id(self) -> str | None:
        """Return the id of the cluster, None if it has none."""
        return await ClusterId(self._store).read()

    async def read_metadata(self, topics: Sequence[str] | None = None) -> messages.MetadataResponse:
        """Return the brokers and partitions in ZooKeeper, of all topics or of those named that exist."""

        async def describe() -> messages.MetadataResponse:
            found = await self._topics(await self._names() if topics is None else topics)
            tps = [TopicPartition(name, number) for name, topic in found.items() for number in topic.partitions]
            led = await self._leadership(tps)
            states = (
                messages.PartitionState.of(tp, found[tp.topic].topic_id or "", _at(found, tp), led[tp]) for tp in tps
            )
            return messages.MetadataResponse(None, -1, await self._brokers(), tuple(states))

        return await self._retried(describe)

    async def describe_log_dirs(
        self,
        broker_ids: Sequence[int] | None = None,
        partitions: Sequence[TopicPartition] | None = None,  # noqa: ARG002  of no broker anything is known
    ) -> dict[int, BrokerLogDirs]:
        """Return a fault for each broker: ZooKeeper does not know the contents of log directories."""
        fault = "ZooKeeper does not tell sizes: ask Kafka's brokers with kafka-log-dirs"
        return {broker_id: BrokerLogDirs(fault=fault) for broker_id in broker_ids or ()}

    # --- reading ------------------------------------------------------------------------------------------------

    async def _retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        deadline = trio.current_time() + self._timeout
        while True:
            try:
                return await attempt()
            except (ConnectionLost, SessionExpired):
                if trio.current_time() >= deadline:
                    raise
            await trio.sleep(RETRY_SECONDS)

    async def _list(self, wanted: Sequence[TopicPartition] | None) -> tuple[messages.OngoingReassignment, ...]:
        requested = await self._requested()
        names = await self._names() if wanted is None else dict.fromkeys(tp.topic for tp in wanted)
        topics = await self._topics(names)
        if wanted is None:
            wanted = [TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions]
        moving = {tp: move for tp in wanted if (move := _move(_at(topics, tp), requested.get(tp))) is not None}
        led = await self._leadership(list(moving))
        return tuple(messages.OngoingReassignment.of(tp, move, led[tp]) for tp, move in sorted(moving.items()))

    async def _names(self) -> list[str]:
        return await children_of(self._store, paths.TOPICS)

    async def _topics(self, names: Iterable[str]) -> dict[str, formats.TopicZnode]:
        wanted = list(names)
        found = await self._znodes.read([paths.topic(name) for name in wanted])
        pairs = zip(wanted, found, strict=True)
        return {name: formats.decode_topic(name, znode.data) for name, znode in pairs if znode is not None}

    async def _leadership(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, LeaderAndIsr]:
        found = await self._znodes.read([paths.partition_state(tp) for tp in tps])
        return {
            tp: NEVER_LED if znode is None else formats.decode_partition_state(tp, znode.data, znode.stat.version)
            for tp, znode in zip(tps, found, strict=True)
        }

    async def _requested(self) -> dict[TopicPartition, tuple[int, ...]]:
        [znode] = await self._znodes.read([paths.REASSIGN_PARTITIONS])
        return {} if znode is None else formats.decode_reassign_partitions(znode.data)

    async def _being_deleted(self) -> set[str]:
        return set(await children_of(self._store, paths.DELETE_TOPICS))

    async def _brokers(self) -> tuple[messages.BrokerEndpoint, ...]:
        ids = sorted(paths.numbers(await children_of(self._store, paths.BROKER_IDS)))
        found = await self._store.read([paths.broker(id_) for id_ in ids])
        return tuple(_endpoint(id_, znode.data) for id_, znode in zip(ids, found, strict=True) if znode is not None)

    # --- writing ------------------------------------------------------------------------------------------------

    async def _request(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        request = Create(paths.REASSIGN_PARTITIONS, formats.encode_reassign_partitions(targets))
        if weight_of([request]) > MAX_GROUP_BYTES:
            text = f"a request of {len(request.data)} bytes is over ZooKeeper's limit of 1 MB: split it into several"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        result = await commit_chunk(self._store, [[request]], None)
        for rejection in result.rejected.values():
            raise rejection
        if result.conflicts:
            text = (
                "Kafka's controller takes one request at a time, and another one is under way: wait until "
                "`klamm reassignment list` shows no more"
            )
            raise ApiError(ErrorCode.REASSIGNMENT_IN_PROGRESS, text)


@asynccontextmanager
async def open_znode_moves(store: MetadataStore, timeout: float) -> AsyncIterator[ZnodeMoves]:  # noqa: ASYNC109  of each call
    """Move replicas through the znodes of `store`, with `timeout` seconds for each call."""
    znodes = WatchedZnodes(store)
    with znodes.watching():
        yield ZnodeMoves(store, znodes, timeout)


# --- pure: valid requests, and moves in progress -----------------------------------------------------------------

_Topics = Mapping[str, formats.TopicZnode]


def _at(topics: _Topics, tp: TopicPartition) -> ReplicaAssignment:
    topic = topics.get(tp.topic)
    return ReplicaAssignment(()) if topic is None else topic.partitions.get(tp.partition, ReplicaAssignment(()))


def _is_there(topics: _Topics, tp: TopicPartition, target: Sequence[int]) -> bool:
    return _at(topics, tp) == ReplicaAssignment(tuple(target))


def _fault(
    item: messages.ReassignablePartition, topics: _Topics, live: Collection[int], deleted: Collection[str]
) -> Fault | None:
    """Return why a partition cannot be moved, None if it can."""
    tp, current = item.tp, _at(topics, item.tp)
    fault = partition_fault(tp, current, is_being_deleted=tp.topic in deleted)
    if fault is not None:
        return fault
    if item.replicas is None:
        return ErrorCode.INVALID_REQUEST, NO_CANCEL
    if current.is_being_reassigned:
        return ErrorCode.REASSIGNMENT_IN_PROGRESS, f"{tp} is being moved already: wait until that is over"
    return target_fault(current, item.replicas, live)


def _move(current: ReplicaAssignment, requested: tuple[int, ...] | None) -> ReplicaAssignment | None:
    """Return a move in progress, or a requested one as it will be; None if there is neither.

    Kafka up to 2.3 writes no adding and removing replicas, so only the request shows that a partition is moving.
    """
    if current.is_being_reassigned:
        return current
    if not current.replicas or requested is None or requested == current.replicas:
        return None
    return reassign_to(current, requested)


def _endpoint(broker_id: int, data: bytes) -> messages.BrokerEndpoint:
    """Return the first endpoint of a broker of any kind, or an empty one if its registration has none."""
    try:
        value = orjson.loads(data)
        _, _, address = str(value["endpoints"][0]).partition("://")
        host, port = addresses.split(address)
        return messages.BrokerEndpoint(broker_id, host, int(port), value.get("rack"))
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, ValueError, AttributeError):
        return messages.BrokerEndpoint(broker_id, "", -1)


def _described(move: messages.OngoingReassignment) -> messages.ReassignmentDescription:
    new = move.target_replicas
    return messages.ReassignmentDescription(
        move.topic,
        move.partition,
        messages.UNKNOWN,
        messages.UNKNOWN,
        move.leader,
        messages.UNTHROTTLED,
        move.replicas,
        move.adding_replicas,
        move.removing_replicas,
        move.isr,
        new,
        tuple(messages.ReplicaProgress(broker, in_sync=broker in move.isr) for broker in new),
    )
