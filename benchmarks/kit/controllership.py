"""A controller to measure: the whole service with unreachable brokers, and the time that each event takes."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog
import trio
from attrs import define, field

from benchmarks.kit.times import NO_TIME, Times
from controller.channels.broker_channels import BrokerChannels
from controller.config import ControllerConfig
from controller.events import ControllerEvent
from controller.model.context import ControllerContext
from controller.node.service import ControllerService
from controller.observation.commit_trace import CommitTrace
from controller.observation.instruments import Instrument
from transport.host import Host
from transport.network import Network, StreamHandler
from transport.store.protocol import MetadataStore

POLL_SECONDS: Final = 0.05


class Unreachable:
    """A network in which no attempt to connect ever ends: whatever is meant for brokers stays in the channels."""

    async def connect(self, host: str, port: int) -> trio.abc.Stream:  # noqa: ARG002
        """Wait; see `Network.connect`."""
        await trio.sleep_forever()

    async def serve(
        self,
        handler: StreamHandler,  # noqa: ARG002
        host: str,  # noqa: ARG002
        port: int,  # noqa: ARG002
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept nobody; see `Network.serve`."""
        task_status.started(1)
        await trio.sleep_forever()


@define
class Stopwatch(Instrument):
    """Times events, and lets others wait until they have been processed."""

    _times: dict[str, list[Times]] = field(factory=dict, init=False)
    _channels: BrokerChannels | None = field(default=None, init=False)
    _began: float = field(default=0.0, init=False)
    _changed: trio.Event = field(factory=trio.Event, init=False)

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:  # noqa: ARG002
        """Start to measure this process's processor time."""
        self._began = time.process_time()

    def finished(self, event: ControllerEvent, seconds: float) -> None:
        """Record the times."""
        self._times.setdefault(event.name, []).append(Times(seconds, time.process_time() - self._began))
        self._changed.set()
        self._changed = trio.Event()

    def took_office(self, context: ControllerContext, channels: BrokerChannels) -> None:  # noqa: ARG002
        """Remember the channels."""
        self._channels = channels

    async def all_told(self) -> None:
        """Wait until the brokers have received everything."""
        while self._channels is None or any(self._channels.queue_sizes().values()):  # noqa: ASYNC110
            await trio.sleep(POLL_SECONDS)

    async def take(self, name: str, count: int = 1) -> Times:
        """Wait until `count` events of a name have been processed since the last call; return their total time."""
        while len(self._times.get(name, ())) < count:
            await self._changed.wait()
        return sum(self._times.pop(name), NO_TIME)


@asynccontextmanager
async def controllership(
    store: MetadataStore, network: Network | None = None
) -> AsyncIterator[tuple[ControllerService, Stopwatch]]:
    """Run a controller on `store`; it stands for election at once."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    config = ControllerConfig(1001, request_timeout_ms=3_600_000, controller_socket_timeout_ms=3_600_000)
    trace, stopwatch = CommitTrace(config.controller_id), Stopwatch()
    service = ControllerService(config, store, network or Unreachable(), Host(), trace, trace, stopwatch)
    async with trio.open_nursery() as nursery:
        await nursery.start(service.run)
        yield service, stopwatch
        nursery.cancel_scope.cancel()
