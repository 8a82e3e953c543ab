"""The entry point of the reference broker."""

from __future__ import annotations

import trio

from broker.config import BrokerConfig
from broker.kit import BrokerHandle, run_broker
from broker.reference.log_dirs import LogDirs, look_after
from broker.reference.logs import Logs
from broker.reference.service import ReferenceService
from transport.host import Host
from transport.network import Network
from transport.store.protocol import MetadataStore


async def run_reference_broker(
    config: BrokerConfig,
    *,
    store: MetadataStore,
    network: Network,
    host: Host,
    logs: Logs | None = None,
    storage_id: str | None = None,
    task_status: trio.TaskStatus[BrokerHandle] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a reference broker until cancelled or shut down; reports as started when it is registered.

    Raises the exceptions of `run_broker` and, in an exception group, AllLogDirsFailed. It stores records in the log
    directories, or in `logs`, which come with their `storage_id`.
    """

    def make_service(handle: BrokerHandle) -> ReferenceService:
        if logs is not None:
            return ReferenceService(handle, logs)
        log_dirs = LogDirs(config.directories)
        service = ReferenceService(handle, log_dirs)
        handle.nursery.start_soon(look_after, log_dirs, service.lose)
        return service

    await run_broker(
        config,
        make_service,
        store=store,
        network=network,
        host=host,
        storage_id=storage_id,
        task_status=task_status,
    )
