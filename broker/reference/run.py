"""Runs a reference broker."""

from __future__ import annotations

import trio

from broker.config import BrokerConfig
from broker.kit import BrokerHandle, run_broker
from broker.reference.log_dir import LogDir
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
    """Run a reference broker until cancelled or shut down; started when it is registered.

    Raises what `run_broker` raises. It stores in the log directory, unless it is given other `logs` and the
    `storage_id` that goes with them.
    """

    def make_service(handle: BrokerHandle) -> ReferenceService:
        return ReferenceService(handle, LogDir(config.log_dir) if logs is None else logs)

    await run_broker(
        config,
        make_service,
        store=store,
        network=network,
        host=host,
        storage_id=storage_id,
        task_status=task_status,
    )
