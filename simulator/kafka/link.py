"""A broker of Kafka's requests to its controller."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar, cast

import trio
from attrs import define, field

from broker.controller_link import ControllerLink, NotAnswered
from simulator.kafka.registration import decode_registered
from simulator.kafka.releases import Release
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.messages import alter_partition_request as asked
from transport.kafka.schema import Versions
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerEndpoint,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    Request,
)
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.formats import UndecodableZnode
from transport.store.protocol import StoreError
from transport.wire import WireError
from transport.wire.client import connect

R = TypeVar("R")

_SHUTDOWN_VERSION = 3
_NAMES_UP_TO = 1
"""The version of AlterPartition up to which topics have names, and above which ids."""

_EPOCHS_SINCE = 3
_UNANSWERED = (ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT)


@define(eq=False)
class KafkaLink(ControllerLink):
    """Asks the controller that UpdateMetadata named last, at the address that it was announced with."""

    release: Release = field(kw_only=True)

    async def _ask(self, request: Request[R]) -> R:
        """Send a request to the controller. Raises NotAnswered if a retry may help, else ApiError."""
        is_shutdown = isinstance(request, ControlledShutdownRequest)
        looks_up = is_shutdown and self.release.finds_controller_in_store
        endpoint = await self._in_store() if looks_up else self._metadata.controller
        if endpoint is None:
            raise NotAnswered("no controller is known")
        handshake = None if is_shutdown else self.release.api_versions
        make = partial(_Connection, handshake, peer=f"controller {endpoint.id}", client_id=self._client_id)
        try:
            connection = await connect(self._network, endpoint.host, endpoint.port, make, self._timeout)
            try:
                return cast("R", await self._converse(connection, request))
            finally:
                await connection.close()
        except WireError as error:
            raise NotAnswered(str(error)) from error
        except ApiError as error:
            if error.code not in _UNANSWERED:
                raise
            raise NotAnswered(str(error)) from error

    @property
    def _client_id(self) -> str:
        return f"broker-{self._registration.broker_id}"

    async def _in_store(self) -> BrokerEndpoint | None:
        """Return the address under which the controller is registered as a broker, if it is."""
        try:
            [holder] = await self._store.read([paths.CONTROLLER])
            id_ = None if holder is None else formats.decode_controller(holder.data)
            [znode] = [None] if id_ is None else await self._store.read([paths.broker(id_)])
            if id_ is None or znode is None:
                return None
            found = decode_registered(id_, znode.data, znode.stat.czxid)
        except (StoreError, UndecodableZnode):
            return None
        return BrokerEndpoint(found.id, found.host, found.port)

    async def _converse(self, connection: KafkaConnection, request: Request[Any]) -> object:
        if isinstance(request, AlterPartitionRequest):
            return await self._alter_partition(connection, request)
        assert isinstance(request, ControlledShutdownRequest)
        message = kafka.ControlledShutdownRequest(request.broker_id, request.broker_epoch)
        kind = kafka.ControlledShutdownResponse
        answer = await connection.send(message, kind, _SHUTDOWN_VERSION, timeout=self._timeout)
        _require(answer.error_code)
        remaining = [TopicPartition(one.topic_name, one.partition_index) for one in answer.remaining_partitions]
        return ControlledShutdownResponse(tuple(remaining))

    async def _alter_partition(
        self, connection: KafkaConnection, request: AlterPartitionRequest
    ) -> AlterPartitionResponse:
        at_most = self.release.alter_partition
        if any(not item.topic_id for item in request.partitions):
            at_most = min(at_most, _NAMES_UP_TO)
        version = connection.version_of(kafka.AlterPartitionRequest, at_most=at_most)
        message = _proposals(request, version)
        answer = await connection.send(message, kafka.AlterPartitionResponse, version, timeout=self._timeout)
        _require(answer.error_code)
        names = {item.topic_id: item.topic for item in request.partitions}
        results = [
            AlterPartitionResult(
                names.get(topic.topic_id, "") if version > _NAMES_UP_TO else topic.topic_name,
                one.partition_index,
                ErrorCode(one.error_code),
                one.leader_id,
                one.leader_epoch,
                one.isr,
                one.partition_epoch,
                one.leader_recovery_state,
            )
            for topic in answer.topics
            for one in topic.partitions
        ]
        # A partition whose topic or number was not asked about is ignored, and the one asked about is sent again.
        asked_about = {item.tp for item in request.partitions}
        return AlterPartitionResponse(tuple(result for result in results if result.tp in asked_about))


class _Connection(KafkaConnection):
    """A connection that begins with ApiVersions in the broker's version, or without it if `handshake` is None."""

    def __init__(self, handshake: int | None, stream: trio.abc.Stream, *, peer: str, client_id: str) -> None:
        super().__init__(stream, peer=peer, client_id=client_id)
        self._handshake = handshake

    async def negotiate(self, *, timeout: float = 0.0) -> None:  # noqa: ASYNC109  as in what it overrides
        """Ask the controller for its versions; again in an older version if it does not know this one."""
        if self._handshake is None:
            return
        ask = partial(self.send, kafka.ApiVersionsRequest("broker", "1"), kafka.ApiVersionsResponse, timeout=timeout)
        offered = await ask(self._handshake)
        if offered.error_code == ErrorCode.UNSUPPORTED_VERSION:
            offered = await ask(min(self._handshake, 3))
        self._offered = {api.api_key: Versions(api.min_version, api.max_version) for api in offered.api_keys}


def _require(error_code: int) -> None:
    if error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(error_code), "the controller refused the request")


def _proposals(request: AlterPartitionRequest, version: int) -> kafka.AlterPartitionRequest:
    entries: dict[tuple[str, str], list[asked.PartitionData]] = {}
    for item in request.partitions:
        entries.setdefault((item.topic, item.topic_id), []).append(_proposal(item, version))
    topics = [asked.TopicData(name, topic_id, tuple(of)) for (name, topic_id), of in entries.items()]
    return kafka.AlterPartitionRequest(request.broker_id, request.broker_epoch, tuple(topics))


def _proposal(item: AlterPartitionItem, version: int) -> asked.PartitionData:
    # In ZooKeeper mode a leader does not know the epochs of its followers, and sends -1.
    with_epochs = tuple(asked.BrokerState(member) for member in item.new_isr)
    has_epochs = version >= _EPOCHS_SINCE
    return asked.PartitionData(
        item.partition,
        item.leader_epoch,
        () if has_epochs else item.new_isr,
        with_epochs if has_epochs else (),
        item.leader_recovery_state,
        item.partition_epoch,
    )
