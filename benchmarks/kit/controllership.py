"""A controller to measure: the whole service, and what an event takes from its beginning until all is at rest."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import structlog
import trio
from attrs import define, field, frozen

from benchmarks.kit.accepting_brokers import MICROSECONDS, AcceptingBrokers, Taken
from benchmarks.kit.cluster import Shape
from benchmarks.kit.requests import creation_of, deletion_of, moves_to, shutdown_of
from benchmarks.kit.samples import now
from benchmarks.kit.times import Times
from controller.channels.broker_channels import BrokerChannels
from controller.config import ControllerConfig
from controller.events import ControllerEvent
from controller.model.context import ControllerContext
from controller.node.service import ControllerService
from controller.observation.commit_trace import CommitTrace
from controller.observation.instruments import Application, Instrument, Instruments
from transport.host import Host
from transport.messages import Request
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import paths
from transport.store.protocol import Delete, MetadataStore

POLL_SECONDS: Final = 0.2
QUIET_SECONDS: Final = 2.0
OWN: Final = "/klamm/"
BUSY: Final = 0.25
"""The share of a core that this process uses if it is not at rest."""


@frozen
class Outcome:
    """An event that is over: when the last state was in the store, and the last broker had answered."""

    times: Times
    """The time until then, and the processor time of this process until it was at rest."""

    rest: float
    """The seconds from then until the queue had nothing more to do."""

    taken: Taken


@define
class Stopwatch(Instrument):
    """Measures one event at a time."""

    brokers: AcceptingBrokers
    _began: int = field(default=0, init=False)
    _processor: float = field(default=0.0, init=False)
    _committed: int = field(default=0, init=False)
    _finished: int = field(default=0, init=False)
    _channels: BrokerChannels | None = field(default=None, init=False)

    def begin(self) -> None:
        """Begin an event now."""
        gc.collect()
        self._began, self._processor = now(), time.process_time()

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:  # noqa: ARG002
        """Begin with the first event, by which the controller stands for election."""
        if not self._began:
            self.begin()

    def finished(self, event: ControllerEvent, seconds: float) -> None:  # noqa: ARG002
        """Note when the queue has last been busy."""
        self._finished = now()

    def applying(self, context: ControllerContext, application: Application) -> None:  # noqa: ARG002
        """Note when the cluster's states have last been written, other than what the controller keeps for itself."""
        writes = (op for group in application.steps.groups for op in group)
        if application.zxid is not None and not all(op.path.startswith(OWN) for op in writes):
            self._committed = now()

    def took_office(self, context: ControllerContext, channels: BrokerChannels) -> None:  # noqa: ARG002
        """Remember the channels."""
        self._channels = channels

    async def until_at_rest(self, service: ControllerService) -> Outcome:
        """Wait until nothing has happened for a while; return what the event took."""
        processor, quiet_since = time.process_time(), trio.current_time()
        taken: Taken | None = None
        while taken is None or trio.current_time() - quiet_since < QUIET_SECONDS:
            before, used = taken, time.process_time()
            await trio.sleep(POLL_SECONDS)
            taken = await self.brokers.taken(self._began)
            is_busy = time.process_time() - used > BUSY * POLL_SECONDS
            if is_busy or taken != before or not self._has_told_all or not service.is_idle:
                processor, quiet_since = time.process_time(), trio.current_time()
        end = max(taken.answered, self._committed)
        times = Times((end - self._began) / MICROSECONDS, processor - self._processor)
        return Outcome(times, max(0, self._finished - end) / MICROSECONDS, taken)

    @property
    def _has_told_all(self) -> bool:
        return self._channels is not None and not any(self._channels.queue_sizes().values())


@define
class Controllership:
    """A controller that is measured. Each event is over, and everything at rest, when its method returns."""

    service: ControllerService
    _stopwatch: Stopwatch
    _store: MetadataStore
    """A session that is not the controller's."""

    async def fail_over(self) -> Outcome:
        """Take office; must be called first."""
        return await self._stopwatch.until_at_rest(self.service)

    async def lose(self, broker_id: int) -> Outcome:
        """Lose a broker."""
        self._stopwatch.begin()
        await self._store.multi([Delete(paths.broker(broker_id))])
        return await self._stopwatch.until_at_rest(self.service)

    async def shut_down(self, broker_id: int) -> Outcome:
        """Relieve a broker that is about to stop."""
        return await self._answer(await shutdown_of(self._store, broker_id))

    async def create(self, more: Shape) -> Outcome:
        """Create topics."""
        return await self._answer(creation_of(more))

    async def delete(self, more: Shape) -> Outcome:
        """Delete topics."""
        return await self._answer(deletion_of(more))

    async def move(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Outcome:
        """Move partitions; the leaders let new replicas join at once."""
        await self._stopwatch.brokers.let_join(self.service.port)
        outcome = await self._answer(moves_to(targets))
        await self._stopwatch.brokers.let_join(0)
        return outcome

    async def _answer(self, request: Request[object]) -> Outcome:
        self._stopwatch.begin()
        await self.service.answer(request)
        return await self._stopwatch.until_at_rest(self.service)


@asynccontextmanager
async def controllership(
    controllers: MetadataStore, store: MetadataStore, brokers: AcceptingBrokers, *instruments: Instrument
) -> AsyncIterator[Controllership]:
    """Run a controller on the first session, with more instruments; it stands for election at once."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    config = ControllerConfig(
        1001, request_timeout_ms=3_600_000, controller_socket_timeout_ms=3_600_000, auto_leader_rebalance_enable=False
    )
    trace, stopwatch = CommitTrace(config.controller_id), Stopwatch(brokers)
    service = ControllerService(
        config, controllers, TcpNetwork(), Host(), trace, trace, Instruments([stopwatch, *instruments])
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(service.run)
        yield Controllership(service, stopwatch, store)
        nursery.cancel_scope.cancel()
