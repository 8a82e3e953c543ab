"""The broker kit: everything that makes a process a broker of the cluster, except the data of the partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

import trio
from attrs import define, field, frozen

from actors import Backoff
from broker.config import BrokerConfig
from broker.controlled_shutdown import ShutdownOutcome, be_relieved
from broker.controller_link import ControllerLink
from broker.controller_requests import ControllerRequests
from broker.meta_properties import load_storage_id
from broker.metadata_cache import MetadataCache
from broker.registration import BrokerIdInUse, Registration
from broker.replication_throttles import ReplicationThrottles
from broker.service import DescribesLogDirs, Service
from broker.topic_configs import TopicConfigs
from transport.errors import ApiError
from transport.host import Host
from transport.log import get_logger
from transport.messages import Api, DescribeLogDirsRequest, DescribeLogDirsResponse, Request
from transport.metadata import TopicPartition
from transport.network import Network
from transport.service_security import secured_for_service, security_of_service
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore, StoreError, ensure_paths
from transport.store.reachability import until_answered
from transport.wire import Handlers, WireError, open_connection, serve

R = TypeVar("R")

_log = get_logger(__name__)


class Forgetful(Protocol):
    """Remembers the orders of replicas."""

    async def forget(self, tps: Iterable[TopicPartition]) -> None:
        """Forget the orders of replicas, so that the next ones reach the service whatever their epochs."""


@frozen(eq=False)
class LostReplicas:
    """Writes notifications, after which the controller repeats its orders to this broker (KIP-112)."""

    _store: MetadataStore
    _host: Host
    _broker_id: int
    _requests: Forgetful

    async def report(self, tps: Iterable[TopicPartition]) -> None:
        """Notify the controller, and forget the orders of the replicas, so that the next ones reach the service."""
        await self._requests.forget(tps)
        backoff = Backoff(jitter=self._host.rng.random)
        notification = Create(
            f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_",
            formats.encode_log_dir_event(self._broker_id),
            sequence=True,
        )
        while True:
            try:
                await self._store.multi([notification])
            except StoreError as error:
                # It may have been written; a second notification does no harm.
                _log.info("retrying the notification of lost replicas", broker_id=self._broker_id, reason=str(error))
                await trio.sleep(backoff.next())
            else:
                return


@define(eq=False)
class BrokerHandle:
    """The kit's interface for the service, and for the caller that runs the broker."""

    config: BrokerConfig
    metadata: MetadataCache
    link: ControllerLink
    topic_configs: TopicConfigs
    throttles: ReplicationThrottles
    network: Network
    host: Host
    nursery: trio.Nursery
    """For the service's background tasks; it lives as long as the broker."""

    _registration: Registration
    _own_apis: Sequence[Api] = ()
    port: int = 0
    """The port on which the broker listens; 0 before that."""

    lost: LostReplicas = field(init=False)

    @property
    def broker_id(self) -> int:
        """The broker's id."""
        return self.config.broker_id

    @property
    def broker_epoch(self) -> int:
        """The czxid of the broker's registration; -1 before the first. A new session changes it."""
        return self._registration.epoch

    async def shut_down(self) -> ShutdownOutcome:
        """Shut down in a controlled way: have leadership moved away and replicas stopped, then end `run_broker`.

        The broker continues to serve until the controller has moved leadership away, or until the attempts in its
        settings are used up. After cancelling `run_broker` instead, leadership moves when the registration ends.
        """
        outcome = await be_relieved(self.config, self.link)
        self.nursery.cancel_scope.cancel()
        return outcome

    def announce(self, port: int) -> None:
        """Register another port, at which others reach this broker from now on; `advertised.port` takes precedence.

        For a broker whose address changes while it runs. Its registration and broker epoch stay.
        """
        self.port = port
        self._registration.move(port)

    async def report_lost(self, tps: Iterable[TopicPartition]) -> None:
        """Notify the controller that replicas are lost, so that it repeats their orders; returns when that is durable.

        For a service that can no longer use the data of these replicas, for example because a disk failed. Until the
        broker restarts, the service must reject all orders for them, except to stop, with KAFKA_STORAGE_ERROR.
        """
        await self.lost.report(tps)

    async def ask_all(
        self,
        broker_ids: Iterable[int],
        request: Request[R],
        *,
        timeout: float,  # noqa: ASYNC109  as everywhere on the wire
    ) -> dict[int, R]:
        """Send a request to brokers concurrently, over a new connection each, and return the responses by broker.

        Brokers that are not alive, return an error, or do not answer within `timeout` seconds are left out.
        """
        answers: dict[int, R] = {}
        async with trio.open_nursery() as nursery:
            for broker_id in broker_ids:
                nursery.start_soon(self._ask, broker_id, request, answers, timeout)
        return dict(sorted(answers.items()))

    async def _ask(self, broker_id: int, request: Request[R], answers: dict[int, R], seconds: float) -> None:
        endpoint = self.metadata.broker(broker_id)
        if endpoint is None:
            return
        opening = partial(open_connection, client_id=f"broker-{self.broker_id}", own_apis=self._own_apis)
        with trio.move_on_after(seconds), suppress(ApiError, WireError):
            async with opening(self.network, endpoint.host, endpoint.port) as connection:
                answers[broker_id] = await connection.call(request)


async def run_broker(  # noqa: PLR0913  all but two by keyword: a broker's parts and how it is started
    config: BrokerConfig,
    make_service: Callable[[BrokerHandle], Service],
    *,
    store: MetadataStore,
    network: Network,
    host: Host,
    own_apis: Sequence[Api] = (),
    storage_id: str | None = None,
    task_status: trio.TaskStatus[BrokerHandle] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a broker until cancelled or shut down: serve, register, and obey the controller through the service.

    `own_apis` are the additional apis that the service's handlers answer; clients pass the same rows to
    `open_connection`. `storage_id` identifies the service's storage; None stands for the id in the `meta.properties` of
    the log directories. Reports as started when registered. The registration ends with the session of `store`, which
    the caller closes.

    Raises WrongLogDir, InvalidSetting for an address that others cannot use and for a file of `security.config` that
    cannot be used, ValueError for own apis that clash with
    ours, and BrokerIdInUse, possibly in an exception group. Also raises, in an exception group, OSError if the address
    cannot be listened on, and the exceptions of the service's background tasks.
    """
    config.advertised(config.host, config.port)
    network = secured_for_service(network, security_of_service(config), store)
    await until_answered(partial(_prepare, store, config.broker_id))
    # Only now is it certain that the id is free, so that it can be written into the log directories.
    if storage_id is None:
        storage_id = load_storage_id(config.directories, config.broker_id, host.new_id)
    metadata = MetadataCache()
    registration = Registration(store, host, config, storage_id)
    link = ControllerLink(store, network, host, metadata, registration, config.controller_socket_timeout_ms / 1000)
    async with trio.open_nursery() as nursery:
        topic_configs = TopicConfigs(store, config, host)
        nursery.start_soon(topic_configs.keep_fresh)
        throttles = ReplicationThrottles(store, config.broker_id, host)
        nursery.start_soon(throttles.keep_fresh, topic_configs.changed)
        handle = BrokerHandle(
            config, metadata, link, topic_configs, throttles, network, host, nursery, registration, own_apis
        )
        service = make_service(handle)
        requests = ControllerRequests(service, metadata, registration)
        handle.lost = LostReplicas(store, host, config.broker_id, requests)
        handlers = {**requests.handlers(), **_log_dir_handlers(service), **service.handlers()}
        serving = partial(serve, network, handlers, config.host, config.port, own_apis=own_apis)
        handle.port = await nursery.start(serving)
        await registration.register(handle.port)
        task_status.started(handle)
        await registration.keep()


async def _prepare(store: MetadataStore, broker_id: int) -> None:
    """Create the paths of a cluster. Raises BrokerIdInUse if a controller has the broker's id."""
    await ensure_paths(store, paths.PERSISTENT)
    [controller] = await store.read([paths.controller_endpoint(broker_id)])
    if controller is not None:
        raise BrokerIdInUse(f"id {broker_id} is that of a live controller: a broker needs one that no controller has")


def _log_dir_handlers(service: Service) -> Handlers:
    if not isinstance(service, DescribesLogDirs):
        return {}

    async def describe(request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        return DescribeLogDirsResponse(tuple(await service.describe_log_dirs(request.partitions)))

    return {DescribeLogDirsRequest: describe}
