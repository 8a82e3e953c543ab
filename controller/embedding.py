"""Running a controller inside any trio program."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from controller.config import ControllerConfig
from controller.monitoring.http_pages import monitored
from controller.monitoring.measurements import Measurements, measured
from controller.monitoring.state_change_log import open_state_change_log
from controller.node.acl_authorizer import AclAuthorizer
from controller.node.admission import Authorizer, allow_all
from controller.node.candidacy import candidacy_of
from controller.node.freed_memory import FreedMemory
from controller.node.kafka_listeners import kafka_listeners
from controller.node.service import ControllerService
from controller.observation.commit_trace import CommitTrace
from controller.observation.instruments import Instrument, Instruments
from controller.observation.observer import Observer, Observers
from transport.addresses import address_text
from transport.host import Host
from transport.kafka.registration import is_controllers
from transport.network import Network, TcpNetwork
from transport.security.settings import AuthorizerSettings
from transport.service_security import secured_for_service, security_of_service
from transport.store import paths
from transport.store.controllers import find_endpoint
from transport.store.formats import UndecodableZnode
from transport.store.protocol import MetadataStore, ensure_paths
from transport.store.reachability import until_answered
from transport.store.security import security_of
from transport.store.zookeeper import open_zookeeper
from transport.wire import WireError, open_connection

TWIN_TIMEOUT_SECONDS: Final = 1.0
"""The time within which a live controller of the same id must accept a connection."""


class ControllerIdInUse(Exception):
    """A live broker or controller has this controller's id; the message is one line with the remedy."""


OpenStore = Callable[[], AbstractAsyncContextManager[MetadataStore]]
"""Opens a session with a metadata store."""


async def run(
    config: ControllerConfig,
    *,
    observer: Observer | None = None,
    open_store: OpenStore | None = None,
    network: Network | None = None,
    host: Host | None = None,
    authorizer: Authorizer = allow_all,
    task_status: trio.TaskStatus[ControllerService] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a controller until cancelled, then resign. In a nursery: `await nursery.start(klamm.run, config)`.

    It stands for election at once, and answers requests whether elected or not. The service passed to
    `task_status.started` has its address and accepts events. `observer` sees each decision, commit and publication. The
    controller opens its own session with the metadata store: with ZooKeeper at `config.zookeeper_connect`, or with
    `open_store` (for example `MemoryZooKeeper(...).session`). `authorizer` decides which operations a caller may
    perform on the cluster and its topics; refusals are answered with CLUSTER_AUTHORIZATION_FAILED or
    TOPIC_AUTHORIZATION_FAILED. Brokers need ClusterAction on the cluster.

    It waits until ZooKeeper is reachable, for at most `zookeeper.connection.timeout.ms` if that is set. Raises
    StoreUnavailable after that time or if ZooKeeper cannot be trusted, ForeignCluster if the store belongs to another
    kind of cluster, ControllerIdInUse if a live broker or controller has the id, OSError if the state-change log cannot
    be written, InvalidSetting for an address that others cannot use and for a file of `security.config` that
    cannot be used. Raises in an exception group: OSError if the address is in use, CannotListen, and
    CannotServeMetrics.
    """
    config.advertised(config.host, config.port)
    kafka_listeners(config)
    security = security_of_service(config)
    trace = CommitTrace(config.controller_id)
    observers = Observers((trace,) if observer is None else (trace, observer))
    open_store = open_store or partial(_open_zookeeper, config)
    host = host or Host()
    network = network or TcpNetwork()
    measurements, freed = Measurements(), FreedMemory(host.give_back_memory)
    with _open_instruments(config, host, measurements, freed) as instruments:
        async with open_store() as session:
            secured = secured_for_service(network, security, session)
            await until_answered(partial(_check, session, config, secured, host))
            store = session if config.metrics_port is None else measured(session, measurements)
            async with _following_acls(session, security.authorizer, authorizer) as judge:
                service = ControllerService(config, store, secured, host, observers, trace, instruments, judge)
                async with monitored(service, measurements, network), freed.given_back():
                    await service.run(task_status=task_status)


@asynccontextmanager
async def _following_acls(
    store: MetadataStore, settings: AuthorizerSettings, otherwise: Authorizer
) -> AsyncIterator[Authorizer]:
    """Return what decides who may do what: Kafka's ACLs if they are enabled, and else another authorizer."""
    if not settings.is_enabled:
        yield otherwise
        return
    authorizer = AclAuthorizer(store, settings)
    async with trio.open_nursery() as nursery:
        await nursery.start(authorizer.follow)
        yield authorizer
        nursery.cancel_scope.cancel()


def _open_zookeeper(config: ControllerConfig) -> AbstractAsyncContextManager[MetadataStore]:
    timeout, security = config.zookeeper_session_timeout_ms, security_of(config)
    patience = config.zookeeper_patience
    return open_zookeeper(
        config.zookeeper_connect,
        session_timeout_ms=timeout,
        connect_timeout=patience,
        waits=True,
        security=security,
        limits=config.request_limits,
    )


@contextmanager
def _open_instruments(
    config: ControllerConfig, host: Host, measurements: Measurements, freed: FreedMemory
) -> Iterator[Instruments]:
    with ExitStack() as stack:
        instruments: list[Instrument] = [freed]
        if config.metrics_port is not None:
            instruments.append(measurements)
        if config.state_change_log is not None:
            instruments.append(stack.enter_context(open_state_change_log(Path(config.state_change_log), host.now_ms)))
        yield Instruments(instruments)


async def _check(store: MetadataStore, config: ControllerConfig, network: Network, host: Host) -> None:
    await candidacy_of(config, host, network).require_eligible(store)
    # Kafka's brokers before 3.0 do not start if the last block of ids is empty: they and the first request create it.
    await ensure_paths(store, [path for path in paths.PERSISTENT if not (config.kafka and path == paths.PRODUCER_IDS)])
    [broker] = await store.read([paths.broker(config.controller_id)])
    # A registration of a controller is left from an earlier process, or shows below to be a twin's.
    if broker is not None and not is_controllers(config.controller_id, broker.data):
        id_ = config.controller_id
        raise ControllerIdInUse(f"id {id_} is that of a live broker: a controller needs one that no broker has")
    await _refuse_twin(store, config.controller_id, network)


async def _refuse_twin(store: MetadataStore, controller_id: int, network: Network) -> None:
    """Raise ControllerIdInUse if a controller with this id answers at its registered address.

    A twin would replace that registration, and when it stops, the first controller could no longer be found. A killed
    controller does not answer, so its successor need not wait until its session expires.
    """
    try:
        endpoint = await find_endpoint(store, controller_id)
    except UndecodableZnode:  # it is replaced like the endpoint of a dead controller
        return
    if endpoint is None:
        return
    host, port = endpoint.host, endpoint.port
    try:
        async with open_connection(network, host, port, client_id="twin", connect_timeout=TWIN_TIMEOUT_SECONDS):
            text = f"controller id {controller_id} is already live at {address_text(host, port)}"
            text = f"{text}: stop that one or choose another id"
            raise ControllerIdInUse(text)
    except WireError:
        return
