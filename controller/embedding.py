"""Running a controller inside any trio program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from controller.commit_trace import CommitTrace
from controller.config import ControllerConfig
from controller.observer import Observer, Observers
from controller.service import ControllerService
from transport.host import Host
from transport.network import Network, TcpNetwork
from transport.store import paths
from transport.store.protocol import MetadataStore, ensure_paths
from transport.store.zookeeper import open_zookeeper


async def run(
    config: ControllerConfig,
    *,
    observer: Observer | None = None,
    store: MetadataStore | None = None,
    network: Network | None = None,
    host: Host | None = None,
    task_status: trio.TaskStatus[ControllerService] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a controller until cancelled, then resign. In a nursery: `await nursery.start(controller.run, config)`.

    It stands for election at once and answers requests either way; what is `started` tells where it listens, and
    takes events. `observer` sees each commit and each publish. Without a `store` it opens a session with
    `config.zookeeper_connect`; one that is given is the caller's to close.

    Raises StoreUnavailable if ZooKeeper cannot be reached; in an exception group OSError if the address is in use.
    """
    trace = CommitTrace(config.controller_id)
    observers = Observers((trace,) if observer is None else (trace, observer))
    async with _session(config, store) as session:
        await ensure_paths(session, paths.PERSISTENT)
        service = ControllerService(config, session, network or TcpNetwork(), host or Host(), observers, trace)
        await service.run(task_status=task_status)


@asynccontextmanager
async def _session(config: ControllerConfig, store: MetadataStore | None) -> AsyncIterator[MetadataStore]:
    if store is not None:
        yield store
        return
    timeout = config.zookeeper_session_timeout_ms
    async with open_zookeeper(config.zookeeper_connect, session_timeout_ms=timeout) as opened:
        yield opened
