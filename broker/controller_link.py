"""A broker's requests to the active controller."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final, TypeVar

import trio
from attrs import define
from msgspec.structs import replace

from actors import Backoff
from broker.metadata_cache import MetadataCache
from broker.registration import Registration
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.log import get_logger
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResult,
    BrokerEndpoint,
    ControlledShutdownRequest,
    PartitionState,
    Request,
)
from transport.metadata import TopicPartition
from transport.network import Network
from transport.store.controllers import find_controller
from transport.store.formats import UndecodableZnode
from transport.store.protocol import MetadataStore, StoreError
from transport.wire import REQUEST_TIMEOUT_SECONDS, WireError, open_connection

R = TypeVar("R")

_RETRIED: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT)

_log = get_logger(__name__)


class NotAnswered(Exception):
    """No active controller was found, or it is unknown whether it carried out the request."""


@define(eq=False)
class ControllerLink:
    """Finds the active controller and follows it from one to the next.

    It uses the controller that sent the latest UpdateMetadata. When that one cannot be reached, or answers that it is
    not the controller, it looks up the store until a newer controller sends one. Requests are rare and carry many
    partitions, so each gets a connection of its own.
    """

    _store: MetadataStore
    _network: Network
    _host: Host
    _metadata: MetadataCache
    _registration: Registration
    _timeout: float = REQUEST_TIMEOUT_SECONDS
    """Seconds to connect, and then to wait for an answer."""

    _distrusted: tuple[int, BrokerEndpoint] | None = None

    async def alter_partition(self, items: Sequence[AlterPartitionItem]) -> tuple[AlterPartitionResult, ...]:
        """Ask the controller to change ISRs, and retry until it answers; an answer may be that to a retry.

        Raises ApiError for an error of the whole request that a retry cannot resolve, such as STALE_BROKER_EPOCH.
        """
        registration = self._registration
        request = AlterPartitionRequest(registration.broker_id, registration.epoch, tuple(items))
        answers = [await self._until_answered(part.partitions) for part in request.parts()]
        return tuple(chain.from_iterable(answers))

    async def _until_answered(self, items: tuple[AlterPartitionItem, ...]) -> tuple[AlterPartitionResult, ...]:
        backoff = Backoff(jitter=self._host.rng.random)
        while True:
            registration = self._registration
            request = AlterPartitionRequest(registration.broker_id, registration.epoch, items)
            try:
                return (await self._ask(request)).partitions
            except NotAnswered:
                await trio.sleep(backoff.next())

    async def alter_isr(self, state: PartitionState, isr: Sequence[int]) -> PartitionState | None:
        """Ask the controller to change the ISR of one partition that this broker leads, and retry until it answers.

        Returns the state in effect after that, or None if the change was refused: the controller knows a newer state,
        which it will send, or the ISR is invalid.
        """
        names = (state.topic, state.topic_id, state.partition)
        item = AlterPartitionItem(*names, state.leader_epoch, tuple(isr), state.partition_epoch)
        try:
            [result] = await self.alter_partition([item])
        except ApiError as error:
            _log.info("an ISR was refused", partition=str(state.tp), reason=str(error))
            return None
        if result.error is not ErrorCode.NONE:
            return None
        return replace(state, isr=result.isr, partition_epoch=result.partition_epoch)

    async def controlled_shutdown(self) -> tuple[TopicPartition, ...]:
        """Ask the controller once for a controlled shutdown. Return the partitions that this broker still leads.

        Raises NotAnswered, or ApiError if the controller knows another registration of this broker.
        """
        request = ControlledShutdownRequest(self._registration.broker_id, self._registration.epoch)
        return (await self._ask(request)).remaining

    async def _ask(self, request: Request[R]) -> R:
        """Send a request to the likely controller. Raises NotAnswered if a retry may help, else ApiError."""
        endpoint = await self._find()
        if endpoint is None:
            raise NotAnswered("no controller is active")
        client_id = f"broker-{self._registration.broker_id}"
        opening = partial(open_connection, client_id=client_id, connect_timeout=self._timeout)
        try:
            async with opening(self._network, endpoint.host, endpoint.port) as connection:
                return await connection.call(request, timeout=self._timeout)
        except WireError as error:
            self._give_up_on(endpoint, str(error))
            raise NotAnswered(str(error)) from error
        except ApiError as error:
            # An administrator can grant the permission at any time.
            if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                text = "the controller rejects this broker, which needs ClusterAction on the cluster: retrying"
                _log.warning(text, controller=endpoint.id, broker_id=self._registration.broker_id, reason=str(error))
                raise NotAnswered(str(error)) from error
            if error.code not in _RETRIED:
                raise
            self._give_up_on(endpoint, str(error))
            raise NotAnswered(str(error)) from error

    async def _find(self) -> BrokerEndpoint | None:
        spoke_last = self._metadata.controller
        if spoke_last is not None and (self._metadata.controller_epoch, spoke_last) != self._distrusted:
            return spoke_last
        try:
            return await find_controller(self._store)
        except (StoreError, UndecodableZnode) as error:
            _log.info("the controller cannot be looked up", reason=str(error))
            return None

    def _give_up_on(self, endpoint: BrokerEndpoint, reason: str) -> None:
        _log.info("the controller did not answer", controller=endpoint.id, reason=reason)
        if endpoint == self._metadata.controller:
            self._distrusted = (self._metadata.controller_epoch, endpoint)
