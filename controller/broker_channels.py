"""The channel actors of the active controller, one per live broker incarnation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

import structlog
import trio
from attrs import define, field

from actors import Actor, Backoff, Channel, supervise
from controller.backlog import BrokerBacklog
from controller.config import ControllerConfig
from controller.facts import BrokerGone, BrokerRegistered
from controller.rounds import Publication
from transport.errors import ApiError
from transport.host import Host
from transport.messages import BrokerEndpoint, Request
from transport.metadata import BrokerRegistration
from transport.network import Network
from transport.wire import Connection, ConnectionBroken, RequestTimedOut, UnsupportedApi, open_connection

log = structlog.get_logger(__name__)

BrokerChannel = Channel[Publication, Request[object], object]
OnResponse = Callable[[int, Request[object], object], None]


@define
class BrokerChannels:
    """Starts, stops and feeds the channels. Called from the event-queue task; the channels run in `nursery`."""

    nursery: trio.Nursery
    network: Network
    host: Host
    config: ControllerConfig
    endpoint: BrokerEndpoint
    epoch: int
    on_response: OnResponse
    _channels: dict[int, tuple[Actor[Publication], trio.CancelScope]] = field(factory=dict, init=False)

    def follow(self, fact: BrokerRegistered | BrokerGone) -> None:
        """Keep one channel per live incarnation; the backlog of a bounced or gone broker is dropped."""
        match fact:
            case BrokerRegistered(registration=broker):
                self._stop(broker.id)
                self._start(broker)
            case BrokerGone(broker_id=broker_id):
                self._stop(broker_id)

    def publish(self, publications: Sequence[Publication]) -> None:
        """Hand publications to the channels of the brokers that they name; who has none is not alive."""
        everyone = tuple(self._channels)
        for publication in publications:
            for broker_id in everyone if publication.brokers is None else publication.brokers:
                if broker_id in self._channels:
                    self._channels[broker_id][0].tell(publication)

    def _start(self, broker: BrokerRegistration) -> None:
        scope = trio.CancelScope()
        name = f"broker-{broker.id}"
        channel: BrokerChannel = Channel(
            name,
            BrokerBacklog(self.endpoint, self.epoch, broker.epoch),
            partial(self._connect, broker),
            partial(self.on_response, broker.id),
            backoff=Backoff(0.1, 2.0, jitter=self.host.rng.random),
            retry_on=(ConnectionBroken, RequestTimedOut, UnsupportedApi),
            answered=(ApiError,),
            request_timeout=self.config.request_timeout_ms / 1000,
        )
        self._channels[broker.id] = channel, scope
        self.nursery.start_soon(self._run, channel, scope, name, name=name)

    def close(self) -> None:
        """Stop all channels, dropping their backlogs."""
        for broker_id in list(self._channels):
            self._stop(broker_id)

    async def _run(self, channel: Actor[Publication], scope: trio.CancelScope, name: str) -> None:
        """Run a channel until its broker is gone. A fault costs the other channels nothing, and this one no backlog."""
        backoff = Backoff(1.0, 60.0, jitter=self.host.rng.random)
        with scope:
            await supervise(channel.run, name=name, backoff=backoff)

    def _stop(self, broker_id: int) -> None:
        if broker_id in self._channels:
            _, scope = self._channels.pop(broker_id)
            scope.cancel()

    def _connect(self, broker: BrokerRegistration) -> AbstractAsyncContextManager[Connection]:
        return open_connection(
            self.network,
            broker.host,
            broker.port,
            client_id=f"controller-{self.endpoint.id}",
            connect_timeout=self.config.controller_socket_timeout_ms / 1000,
        )
