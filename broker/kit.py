"""The broker kit: everything about being a broker of the cluster except what the partitions hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio
from attrs import define

from broker.config import BrokerConfig
from broker.controller_link import ControllerLink
from broker.controller_requests import ControllerRequests
from broker.meta_properties import load_storage_id
from broker.metadata_cache import MetadataCache
from broker.registration import Registration
from broker.service import Service
from transport.host import Host
from transport.network import Network
from transport.store import paths
from transport.store.protocol import MetadataStore, ensure_paths
from transport.wire import serve


@define(eq=False)
class BrokerHandle:
    """What the kit gives to a service, and to who runs the broker."""

    config: BrokerConfig
    metadata: MetadataCache
    link: ControllerLink
    network: Network
    host: Host
    nursery: trio.Nursery
    """Lives as long as the broker; for the service's background tasks."""

    _registration: Registration
    port: int = 0
    """Where the broker listens; 0 until it does."""

    @property
    def broker_id(self) -> int:
        """The broker's id."""
        return self.config.broker_id

    @property
    def broker_epoch(self) -> int:
        """The czxid of the broker's registration, -1 until it is registered. A new session changes it."""
        return self._registration.epoch


async def run_broker(
    config: BrokerConfig,
    make_service: Callable[[BrokerHandle], Service],
    *,
    store: MetadataStore,
    network: Network,
    host: Host,
    task_status: trio.TaskStatus[BrokerHandle] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a broker until cancelled: serve, register, and obey the controller through the service.

    Started when registered. The registration ends with the session of `store`, which is the caller's to close.
    Raises WrongLogDir; in an exception group BrokerIdInUse, OSError if the address cannot be listened on, and
    whatever the service's background tasks raise.
    """
    storage_id = load_storage_id(config.log_dir, config.broker_id, host.new_id)
    await ensure_paths(store, paths.PERSISTENT)
    metadata = MetadataCache()
    registration = Registration(store, host, config, storage_id)
    link = ControllerLink(store, network, host, metadata, registration)
    async with trio.open_nursery() as nursery:
        handle = BrokerHandle(config, metadata, link, network, host, nursery, registration)
        service = make_service(handle)
        handlers = {**ControllerRequests(service, metadata, registration).handlers(), **service.handlers()}
        handle.port = await nursery.start(partial(serve, network, handlers, config.host, config.port))
        await registration.register(handle.port)
        task_status.started(handle)
        await registration.keep()
