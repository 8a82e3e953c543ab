"""The controller as a node of a cluster of Apache Kafka's, which answers the requests of its brokers.

The requests of brokers become ours and pass through the same event queue. A controller without the office, or that is
still loading the cluster, answers NOT_CONTROLLER, after which a broker looks for the controller and asks again.

Clients may share a listener with the brokers. KafkaAdmin answers what they ask the controller alone, KafkaMetadata
who is in the cluster; the rest is passed on to a broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

import trio
from attrs import define, evolve, field

from controller.config import ControllerConfig
from controller.model import registrations
from controller.model.context import ControllerContext
from controller.node.admission import OF_BROKERS, Authorizer, admitting
from controller.node.kafka_admin import KafkaAdmin
from controller.node.kafka_listeners import kafka_listeners
from controller.node.kafka_metadata import KafkaMetadata
from controller.node.kafka_own_settings import KafkaOwnSettings
from controller.node.kafka_users import KafkaUsers
from controller.node.office import Office
from transport import messages
from transport.addresses import address_text
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka, questions
from transport.kafka.messages.describe_log_dirs_response import DescribeLogDirsResult
from transport.kafka.orders import Node
from transport.kafka.relay import Relay, Upstream
from transport.kafka.schema import Message
from transport.kafka.server import Handlers, KafkaRequest, serve_stream
from transport.log import get_logger
from transport.messages import Request
from transport.metadata import NO_EPOCH, SecurityProtocol
from transport.network import Network
from transport.security.principal import Principal
from transport.security.sasl import SaslServer
from transport.store.cluster_id import ClusterId
from transport.store.protocol import MetadataStore
from transport.wire import Admit, Caller
from transport.wire.secured import beneath, protocol_of

R = TypeVar("R")

_log = get_logger(__name__)


async def _none(answer: Message, _request: KafkaRequest) -> Message:
    await trio.lowlevel.checkpoint()
    return answer


NO_LOG_DIR: Final = DescribeLogDirsResult(log_dir="none")
"""Clients take an answer without any directory for a refusal."""

OF_ONE_NODE: Final[Handlers] = {
    kafka.DescribeLogDirsRequest: partial(_none, kafka.DescribeLogDirsResponse(results=(NO_LOG_DIR,))),
    kafka.ListGroupsRequest: partial(_none, kafka.ListGroupsResponse()),
    kafka.ListTransactionsRequest: partial(_none, kafka.ListTransactionsResponse()),
}
"""The answers to what clients ask each node about itself: the controller has no logs, groups or transactions."""


class CannotListen(Exception):
    """The controller cannot listen for brokers of Kafka's; the message is one line with the remedy."""


@define
class KafkaNode:
    """Answers the requests of Kafka's brokers; `office` returns the office that the controller holds, if any."""

    config: ControllerConfig
    answer: Callable[[Request[Any]], Awaitable[object]]
    authorizer: Authorizer
    store: MetadataStore
    office: Callable[[], Office | None]
    _admit: Admit = field(init=False)
    _cluster_id: ClusterId = field(init=False)
    _refused: set[tuple[Principal, type[Request[Any]]]] = field(factory=set, init=False)
    """Callers without permission, each with the kind of its request. A repeated request is not logged again."""

    _passed_on: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._admit = admitting(self.authorizer)
        self._cluster_id = ClusterId(self.store)

    async def start(self, nursery: trio.Nursery, network: Network) -> Node | None:
        """Listen in tasks of a nursery. Return the node that brokers are told of, None if the brokers are ours.

        Raises CannotListen.
        """
        listeners = kafka_listeners(self.config)
        if listeners is None:
            return None
        below, _, sasl = beneath(network)
        protocol = protocol_of(network)
        passing_on = network if protocol is SecurityProtocol.PLAINTEXT else None
        ports: dict[str, int] = {}
        for at in listeners.bound:
            is_shared = at.name != (self.config.control_plane_listener_name or "").upper()
            serve_one = partial(self._serve, at.name if is_shared else None, passing_on, sasl)
            try:
                ports[at.name] = await nursery.start(below.serve, serve_one, at.host, at.port)
            except OSError as error:
                where = f"{at.name}://{address_text(at.host, at.port)} ({error.strerror})"
                raise CannotListen(f"cannot listen on {where}: name another address with --listeners") from None
        told = listeners.announced(ports)
        if passing_on is None:
            told = tuple(evolve(listener, protocol=protocol) for listener in told)
        return Node(self.config.controller_id, told)

    def _handlers(self) -> Handlers:
        return {
            kafka.AllocateProducerIdsRequest: self._allocate_producer_ids,
            kafka.AlterPartitionRequest: self._alter_partition,
            kafka.ControlledShutdownRequest: self._controlled_shutdown,
        }

    async def _serve(
        self, listener: str | None, network: Network | None, sasl: SaslServer | None, stream: trio.abc.Stream
    ) -> None:
        """Serve a connection; if the name of its listener is given, there may be clients, for whom a broker answers."""
        upstream = None if listener is None else self._upstream(listener)
        own = KafkaOwnSettings(self.config.controller_id, self._ask).handlers()
        relay = None if upstream is None else Relay(network, upstream, own)
        handlers = self._handlers()
        if listener is not None:
            handlers = {**handlers, **self._for_clients(listener, relay)}
        if relay is not None:
            handlers = {**handlers, **OF_ONE_NODE}
        await serve_stream(stream, handlers, sasl=sasl, relay=relay)

    def _for_clients(self, listener: str, relay: Relay | None) -> Handlers:
        passes_on = relay.can_ask if relay is not None else lambda *_: False
        metadata = KafkaMetadata(listener, self.office, self.authorizer, self._cluster_id.read, passes_on)
        admin = KafkaAdmin(self._ask, self.answer, self.office)
        return {**admin.handlers(), **KafkaUsers(self._ask).handlers(), **metadata.handlers()}

    def _upstream(self, listener: str) -> Upstream | None:
        """Return a broker that clients at a listener can be passed on to, another one each time."""
        office = self.office()
        if office is None:
            return None
        found = [
            Upstream(at.host, at.port, offered)
            for broker, offered in office.channels.connected()
            for at in broker.listeners
            if at.name == listener
        ]
        self._passed_on += 1
        return found[self._passed_on % len(found)] if found else None

    async def _alter_partition(self, request: KafkaRequest) -> kafka.AlterPartitionResponse:
        message: kafka.AlterPartitionRequest = request.message
        version, context = request.header.version, self._context()
        # While the cluster is being loaded, the names of its topics are not known yet.
        if context is None:
            return kafka.AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
        asked = questions.alter_partition(message, version, context.topic_names.get)
        answer = await self._ask(request, asked)
        return questions.alter_partition_answer(message, version, context.topic_names.get, answer)

    async def _controlled_shutdown(self, request: KafkaRequest) -> kafka.ControlledShutdownResponse:
        message: kafka.ControlledShutdownRequest = request.message
        context = self._context()
        epoch = None if context is None else registrations.epoch_of(context, message.broker_id)
        asked = questions.controlled_shutdown(message, NO_EPOCH if epoch is None else epoch)
        return questions.controlled_shutdown_answer(await self._ask(request, asked))

    async def _allocate_producer_ids(self, request: KafkaRequest) -> kafka.AllocateProducerIdsResponse:
        message: kafka.AllocateProducerIdsRequest = request.message
        asked = messages.AllocateProducerIdsRequest(message.broker_id, message.broker_epoch)
        return questions.allocate_producer_ids_answer(await self._ask(request, asked))

    def _context(self) -> ControllerContext | None:
        office = self.office()
        return office.context if office is not None and office.is_loaded else None

    async def _ask(
        self, request: KafkaRequest, asked: Request[R], answer: Callable[[Any], Awaitable[object]] | None = None
    ) -> R | ApiError:
        """Return the answer to a request, or the ApiError that it is refused with.

        `answer`, or else the event queue, answers what the caller is admitted to.
        """
        try:
            handler = self._admit(request.caller, type(asked), self.answer if answer is None else answer)
            self._refused.discard((request.caller.principal, type(asked)))
            return cast("R", await handler(asked))
        except ApiError as refusal:
            if refusal.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED and isinstance(asked, OF_BROKERS):
                self._note(request.caller, type(asked), refusal)
            return refusal

    def _note(self, caller: Caller, asked: type[Request[Any]], refusal: ApiError) -> None:
        """Log that a broker lacks a permission: Kafka's answers have no place for the reason."""
        if (caller.principal, asked) not in self._refused:
            self._refused.add((caller.principal, asked))
            api = asked.__name__.removesuffix("Request")
            _log.warning("a broker's request is refused", api=api, address=caller.address, reason=refusal.message)
