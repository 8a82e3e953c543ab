"""Runs a reference broker."""

from __future__ import annotations

import trio

from broker.config import BrokerConfig
from broker.kit import BrokerHandle, run_broker
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
    task_status: trio.TaskStatus[BrokerHandle] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a reference broker until cancelled; started when it is registered. Raises what `run_broker` raises."""
    await run_broker(config, ReferenceService, store=store, network=network, host=host, task_status=task_status)
