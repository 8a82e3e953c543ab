"""The active controller's channel actors, one per live broker incarnation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count
from math import inf

import structlog
import trio
from attrs import define, field

from actors import Backoff, Channel, PeerConnection, supervise
from actors.histogram import Histogram
from controller.channels.addressing import addressed
from controller.channels.backlog import BrokerBacklog, Told
from controller.channels.sendable import without_faults
from controller.config import ControllerConfig
from controller.model.facts import BrokerGone, BrokerRegistered, BrokerUnusable
from controller.model.rounds import Publication
from transport.errors import ApiError
from transport.host import Host
from transport.kafka.channel import BrokerConnection, encode_order
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.inquiry import ask_release
from transport.kafka.orders import Node
from transport.kafka.releases import WITH_TOPIC_IDS, Release
from transport.kafka.schema import Versions
from transport.log import get_logger
from transport.messages import BrokerEndpoint, Request, UpdateMetadataRequest
from transport.metadata import BrokerRegistration
from transport.network import Network
from transport.wire import CodecError, ConnectionBroken, RequestTimedOut, UnsupportedApi, encode, open_connection

log = get_logger(__name__)

BrokerChannel = Channel[Sequence[Told], Request[object], object]
OnResponse = Callable[[int, Request[object], object], None]
OnRelease = Callable[[int, int, Release], None]


@define
class _TracedBacklog:
    """A broker's backlog that records how long requests wait, and logs the first and last event behind each."""

    broker_id: int
    backlog: BrokerBacklog
    first_event: str | None = field(default=None, init=False)
    last_event: str | None = field(default=None, init=False)
    queue_times: Histogram = field(factory=Histogram, init=False)
    _waits_since: float = field(default=inf, init=False)

    def __len__(self) -> int:
        return len(self.backlog)

    def add(self, told: Sequence[Told]) -> None:
        """Merge items that were published together."""
        for item in told:
            self.backlog.add(item)

    def caused_by(self, event_id: str | None) -> None:
        """Record the event that caused the items added last."""
        self._waits_since = min(self._waits_since, trio.current_time())
        self.first_event = self.first_event or event_id
        self.last_event = event_id

    def take(self) -> Request[object] | None:
        """Remove and return the next request, or None if nothing waits."""
        request = self.backlog.take()
        if request is not None:
            self.queue_times.observe(trio.current_time() - self._waits_since)
            api = type(request).__name__.removesuffix("Request")
            log.debug("sending", broker=self.broker_id, api=api, since=self.first_event, until=self.last_event)
        if not len(self.backlog):
            self.first_event, self._waits_since = None, inf
        return request


@define(eq=False)
class _Member:
    """The channel to one broker incarnation, and the address at which the broker listens now."""

    broker: BrokerRegistration
    backlog: _TracedBacklog
    channel: BrokerChannel = field(init=False)
    offered: Mapping[int, Versions] | None = field(default=None, init=False)
    """The versions that a broker of Kafka's offers, by the keys of apis, while there is a connection."""

    release: Release | None = field(default=None, init=False)
    """The release of a broker of Kafka's, once a connection has shown it."""

    is_stopped: bool = field(default=False, init=False)
    _scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)

    def is_to_be_told(self, topics: Container[str]) -> bool:
        """Return whether metadata of one of these topics waits to be sent, or to be answered."""
        request = self.channel.under_way
        told = request.partitions if isinstance(request, UpdateMetadataRequest) else ()
        return self.backlog.backlog.waits_to_tell(topics) or any(state.topic in topics for state in told)

    def move(self, broker: BrokerRegistration) -> None:
        """Continue at another address, keeping the backlog and the request in flight."""
        self.broker = broker
        self._scope.cancel()

    def stop(self) -> None:
        """Stop the channel and drop the backlog."""
        self.is_stopped = True
        self._scope.cancel()

    async def run(self, backoff: Callable[[], Backoff]) -> None:
        """Run the channel until it is stopped. After a fault it restarts with its backlog; others are not affected."""
        # Log lines of this task must not carry the event that happened to start it.
        structlog.contextvars.unbind_contextvars("event_id", "during", "caused_by")
        while not self.is_stopped:
            with self._scope:
                await supervise(self.channel.run, name=f"broker-{self.broker.id}", backoff=backoff(), log=log)
            self._scope = trio.CancelScope()


def _mend(broker: BrokerRegistration, request: Request[object], fault: Exception) -> Request[object] | None:
    """Return the sendable part of a request that cannot be encoded; log the rows that are dropped."""
    left, rows = without_faults(request, encode_order if broker.is_kafkas else encode)
    for row in rows:
        log.error("set aside: a row cannot be sent to a broker", broker=broker.id, row=f"{row!r:.500}")
    if left is None:
        log.error("set aside: a request cannot be encoded", broker=broker.id, fault=f"{fault!s:.500}")
    return left


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
    node: Node | None = None
    """The controller as a node of a cluster of Kafka's; None if the brokers are ours."""

    on_release: OnRelease = lambda *_: None
    """Takes the release of a broker of Kafka's: its id, its epoch, and what a connection has shown."""

    _channels: dict[int, _Member] = field(factory=dict, init=False)
    _unaddressable: dict[int, Node] = field(factory=dict, init=False)
    """The live Kafka brokers with a registration that cannot be used, with the listeners that they have."""

    _numbers: dict[int, tuple[int, Iterator[int]]] = field(factory=dict, init=False)
    """The epoch and the numbers of requests of each broker's last incarnation.

    A registration that cannot be read for a while ends the channel, not the incarnation.
    """

    def follow(self, fact: BrokerRegistered | BrokerUnusable | BrokerGone) -> None:
        """Keep one channel per live incarnation; the backlog of a bounced or gone broker is dropped.

        A broker without an address for the controller gets no channel. Others learn where clients find it.
        """
        match fact:
            case BrokerUnusable(broker_id=broker_id):
                self._unaddressable[broker_id] = Node(broker_id, fact.listeners, fact.rack)
            case BrokerRegistered(registration=broker):
                self._unaddressable.pop(broker.id, None)
                member = self._channels.get(broker.id)
                if member is not None and member.broker.epoch == broker.epoch:
                    member.move(broker)
                else:
                    self._stop(broker.id)
                    self._start(broker)
            case BrokerGone(broker_id=broker_id):
                self._unaddressable.pop(broker_id, None)
                self._stop(broker_id)

    def publish(self, publications: Sequence[Publication]) -> None:
        """Pass publications to the channels of their recipients; a broker without a channel is not alive."""
        event_id = structlog.contextvars.get_contextvars().get("event_id")
        for broker_id, items in addressed(publications, self._channels).items():
            member = self._channels[broker_id]
            member.channel.tell(items)
            member.backlog.caused_by(event_id)

    def queue_sizes(self) -> dict[int, int]:
        """Return the number of entries waiting for each broker."""
        return {broker_id: len(member.backlog) for broker_id, member in sorted(self._channels.items())}

    def queue_times(self) -> dict[int, Histogram]:
        """Return, for each broker, how long requests waited since the first waiting entry was added."""
        return {broker_id: member.backlog.queue_times for broker_id, member in sorted(self._channels.items())}

    def _start(self, broker: BrokerRegistration) -> None:
        waiting = BrokerBacklog(self.endpoint, self.epoch, broker.epoch, numbers=self._numbers_of(broker))
        backlog = _TracedBacklog(broker.id, waiting)
        member = self._channels[broker.id] = _Member(broker, backlog)
        name = f"broker-{broker.id}"
        member.channel = Channel(
            name,
            backlog,
            partial(self._connect, member),
            partial(self.on_response, broker.id),
            backoff=Backoff(0.1, 2.0, jitter=self.host.rng.random),
            retry_on=(ConnectionBroken, RequestTimedOut, UnsupportedApi),
            answered=(ApiError,),
            unsendable=(CodecError,),
            mend=partial(_mend, broker),
            request_timeout=self.config.request_timeout_ms / 1000,
            log=log,
        )
        self.nursery.start_soon(member.run, self._restart_backoff, name=name)

    def connected(self) -> list[tuple[BrokerRegistration, Mapping[int, Versions]]]:
        """Return the brokers of Kafka's that there is a connection to, and the versions that they offer."""
        members = [member for _, member in sorted(self._channels.items())]
        return [(member.broker, member.offered) for member in members if member.offered is not None]

    def have_told(self, topics: Container[str]) -> bool:
        """Return whether the brokers of Kafka's that there is a connection to know the newest metadata of topics."""
        connected = [member for member in self._channels.values() if member.offered is not None]
        return not any(member.is_to_be_told(topics) for member in connected)

    def _numbers_of(self, broker: BrokerRegistration) -> Iterator[int]:
        epoch, numbers = self._numbers.get(broker.id, (broker.epoch, count()))
        if epoch != broker.epoch:
            numbers = count()
        self._numbers[broker.id] = broker.epoch, numbers
        return numbers

    def close(self) -> None:
        """Stop all channels, dropping their backlogs."""
        for broker_id in list(self._channels):
            self._stop(broker_id)

    def _restart_backoff(self) -> Backoff:
        return Backoff(1.0, 60.0, jitter=self.host.rng.random)

    def _stop(self, broker_id: int) -> None:
        if broker_id in self._channels:
            self._channels.pop(broker_id).stop()

    def _connect(self, member: _Member) -> AbstractAsyncContextManager[PeerConnection[Request[object], object]]:
        opening = partial(self._open_kafkas, member) if member.broker.is_kafkas else open_connection
        return opening(
            self.network,
            member.broker.host,
            member.broker.port,
            client_id=f"controller-{self.endpoint.id}",
            connect_timeout=self.config.controller_socket_timeout_ms / 1000,
        )

    @asynccontextmanager
    async def _open_kafkas(
        self,
        member: _Member,
        network: Network,
        host: str,
        port: int,
        *,
        client_id: str,
        connect_timeout: float,
    ) -> AsyncIterator[BrokerConnection]:
        opening = open_kafka_connection(network, host, port, client_id=client_id, connect_timeout=connect_timeout)
        async with opening as connection:
            seconds = self.config.request_timeout_ms / 1000
            member.release = await ask_release(connection, member.broker.id, timeout=seconds)
            self.on_release(member.broker.id, member.broker.epoch, member.release)
            member.offered = connection.offered
            try:
                yield BrokerConnection(connection, self.nodes, self.have_topic_ids)
            finally:
                member.offered = None

    def have_topic_ids(self) -> bool:
        """Return whether all brokers of Kafka's that have been asked use the ids of topics."""
        releases = [member.release for member in self._channels.values() if member.release is not None]
        protocols = [release.protocol or self.config.protocol for release in releases]
        return all(protocol is not None and protocol >= WITH_TOPIC_IDS for protocol in protocols)

    def nodes(self) -> list[Node]:
        """Return the live brokers and the controller, as brokers of Kafka's are told."""
        brokers = [member.broker for member in self._channels.values()]
        nodes = [Node(broker.id, broker.listeners, broker.rack) for broker in brokers]
        nodes += [node for id_, node in self._unaddressable.items() if id_ not in self._channels and node.listeners]
        return nodes if self.node is None else [*nodes, self.node]
