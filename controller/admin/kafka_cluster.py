"""Which node of a cluster of Kafka's is asked what, and what is asked again.

A call that only reads goes to any node, and to the next one if that does not answer. What only the controller does goes
to the node that the others name as controller: under KRaft any broker, which passes the request on. A change whose
answer was lost is not repeated.

Brokers show a controller of ours that is in office as one more node. It is asked what the controller is asked, but it
is no broker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import chain
from typing import Final, TypeVar

import trio
from attrs import define, field
from msgspec.structs import replace

from controller.admin.active_controller import (
    MAX_RETRY_SECONDS,
    RETRY_SECONDS,
    ClusterUnreachable,
    OutcomeUnknown,
)
from transport.addresses import Address, address_text
from transport.errors import ApiError, ErrorCode
from transport.kafka.calls import Call
from transport.kafka.node_pool import NodePool, open_node_pool
from transport.kafka.reading import Page, configs, metadata, page
from transport.messages import BrokerEndpoint, ConfigResource, ConfigResourceType, MetadataResponse
from transport.metadata import SecurityProtocol
from transport.network import Network
from transport.wire import ConnectionBroken, NoToken, RequestTimedOut, UnsupportedApi, Untrusted, WireError
from transport.wire.secured import beneath, protocol_of

R = TypeVar("R")

ATTEMPT_SECONDS: Final = 10.0
"""The time that one node has to answer a question, before another one is asked."""

_JUDGING_SECONDS: Final = 3.0
"""The time that the controller has to tell whether it is a broker."""

_IDS: Final = ("broker.id", "node.id")
"""The settings of which each broker has at least one. A controller of ours has no settings."""

_WITH_LOGIN: Final = {
    SecurityProtocol.PLAINTEXT: SecurityProtocol.SASL_PLAINTEXT,
    SecurityProtocol.SSL: SecurityProtocol.SASL_SSL,
}
_LOG_IN: Final = (
    "{} wants a login by SASL ({}): set security.protocol to {}, and sasl.mechanism and sasl.jaas.config, in the file "
    "of --command-config"
)
_ANSWER_IS_LOST: Final = (ConnectionBroken, RequestTimedOut)
_NOTHING_WAS_DONE: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED})


@define(eq=False)
class KafkaCluster:
    """The nodes of a cluster, found through those at `bootstrap`; `timeout` limits each call, in seconds."""

    pool: NodePool
    bootstrap: Sequence[Address]
    timeout: float
    _brokers: dict[int, Address] = field(factory=dict, init=False)
    _controller: int | None = field(default=None, init=False)
    _are_brokers: dict[BrokerEndpoint, bool] = field(factory=dict, init=False)
    """Whether the nodes that have been controllers are brokers."""

    @property
    def timeout_ms(self) -> int:
        """The time limit as requests carry it."""
        return round(self.timeout * 1000)

    async def ask(self, call: Call[R]) -> R:
        """Ask nodes in turn until one answers. Raises ClusterUnreachable, ApiError, WireError."""
        return await self._ask_any(call, trio.current_time() + self.timeout)

    async def ask_controller(self, call: Call[R]) -> R:
        """Ask the controller until it answers. Raises ClusterUnreachable, ApiError, WireError."""
        return await self._ask_controller(call, changes=False)

    async def change(self, call: Call[R]) -> R:
        """Let the controller change something. Raises OutcomeUnknown if the answer is lost, and as `ask_controller`."""
        return await self._ask_controller(call, changes=True)

    async def ask_broker(self, broker_id: int, call: Call[R], timeout: float) -> R:  # noqa: ASYNC109  of this question
        """Ask one broker, once. Raises ApiError (BROKER_NOT_AVAILABLE) if it is not alive; WireError."""
        address = await self._address_of(broker_id)
        try:
            return await self.pool.ask(address, call, min(timeout, self.timeout))
        except ConnectionBroken:
            # Where it is now, if it is alive, is looked up the next time.
            self._brokers.pop(broker_id, None)
            raise

    async def locate(self, broker_ids: Collection[int]) -> None:
        """Find the addresses of those brokers that are alive, unless all are known. Raises as `ask`."""
        if not self._brokers.keys() >= set(broker_ids):
            await self._describe((), trio.current_time() + self.timeout)

    async def change_broker(self, broker_id: int, call: Call[R]) -> R:
        """Let a broker change something. Raises OutcomeUnknown if the answer is lost, and as `ask_broker`."""
        return await self._change(await self._address_of(broker_id), call, self.timeout)

    async def change_any(self, call: Call[R]) -> R:
        """Let any broker change something: the first that a connection can be made to.

        Raises OutcomeUnknown if the answer is lost; Untrusted or NoToken, since the next broker would not get further;
        ClusterUnreachable, ConnectionBroken.
        """
        deadline = trio.current_time() + self.timeout
        await self._describe((), deadline)
        *others, last = self._brokers.values()
        for address in others:
            try:
                return await self._change(address, call, max(deadline - trio.current_time(), 0))
            except (Untrusted, NoToken):
                raise
            except ConnectionBroken:
                continue  # Nothing was sent: its name may not resolve yet, for example.
        return await self._change(last, call, max(deadline - trio.current_time(), 0))

    async def describe(self, topics: Sequence[str] | None) -> MetadataResponse:
        """Return what a node knows of brokers and partitions, without a controller that is no broker.

        Raises ClusterUnreachable, WireError.
        """
        found = await self._describe_in_pages(topics, trio.current_time() + self.timeout)
        controller = found.controller
        if controller is None or await self._is_broker(controller):
            return found
        return replace(found, brokers=tuple(one for one in found.brokers if one.id != controller.id))

    # --- nodes --------------------------------------------------------------------------------------------------

    async def _describe(self, topics: Sequence[str] | None, deadline: float) -> MetadataResponse:
        try:
            found = await self._ask_any(metadata(topics), deadline)
        except UnsupportedApi as error:
            # All of Kafka's servers have it but these.
            raise UnsupportedApi(
                f"{error}: it is a controller of KRaft, name brokers with --bootstrap-server"
            ) from None
        self._brokers = {one.id: (one.host, one.port) for one in found.brokers}
        self._controller = None if found.controller is None else found.controller.id
        return found

    async def _describe_in_pages(self, topics: Sequence[str] | None, deadline: float) -> MetadataResponse:
        """Return brokers, and partitions page by page; all of them at once from nodes that have no pages."""
        if topics is not None and not topics:
            return await self._describe(topics, deadline)
        pages: list[Page] = []
        try:
            while not pages or pages[-1].following is not None:
                call = page(topics, pages[-1].following if pages else None)
                pages.append(await self._ask_any(call, deadline))
        except UnsupportedApi:
            return await self._describe(topics, deadline)
        found = await self._describe((), deadline)
        states = tuple(chain.from_iterable(one.states for one in pages))
        return replace(found, partitions=states, refused=tuple(chain.from_iterable(one.refused for one in pages)))

    async def _is_broker(self, node: BrokerEndpoint) -> bool:
        """Return whether a node is a broker, as is assumed of one that does not tell."""
        if node not in self._are_brokers:
            asked = configs([ConfigResource(ConfigResourceType.BROKER, str(node.id))], _IDS)
            try:
                [told] = await self._ask_at((node.host, node.port), asked, min(self.timeout, _JUDGING_SECONDS))
            except (ApiError, WireError):
                return True
            self._are_brokers[node] = told.error is not ErrorCode.NONE or bool(told.entries)
        return self._are_brokers[node]

    async def _address_of(self, broker_id: int) -> Address:
        if broker_id not in self._brokers:
            await self._describe((), trio.current_time() + self.timeout)
        try:
            return self._brokers[broker_id]
        except KeyError:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not alive") from None

    async def _find_controller(self, deadline: float) -> Address:
        while self._controller not in self._brokers:
            await self._describe((), deadline)
            if self._controller is None:
                if trio.current_time() >= deadline:
                    raise ClusterUnreachable("the brokers know no active controller: see the logs of the brokers")
                await trio.sleep(RETRY_SECONDS)
        return self._brokers[self._controller]

    # --- questions and changes ----------------------------------------------------------------------------------

    async def _ask_any(self, call: Call[R], deadline: float) -> R:
        pause = RETRY_SECONDS
        while True:
            faults: dict[Address, WireError] = {}
            for address in dict.fromkeys((*self._brokers.values(), *self.bootstrap)):
                left = max(deadline - trio.current_time(), 0)
                try:
                    return await self._ask_at(address, call, min(left, ATTEMPT_SECONDS))
                except Untrusted:
                    raise
                except NoToken as error:
                    faults = {address: error}
                    break  # The next broker wants a token as well.
                except _ANSWER_IS_LOST as error:
                    faults[address] = error
            await self._require_login(faults)
            if trio.current_time() + pause >= deadline:
                why = "; ".join(dict.fromkeys(map(str, faults.values())))
                raise ClusterUnreachable(f"no broker of Kafka's answers: {why}")
            await trio.sleep(pause)
            pause = min(2 * pause, MAX_RETRY_SECONDS)

    async def _require_login(self, faults: Mapping[Address, WireError]) -> None:
        """Raise Untrusted if brokers end connections without an answer because their clients have to log in."""
        _, login, _ = beneath(self.pool.network)
        if login is not None or any(type(fault) is not ConnectionBroken for fault in faults.values()):
            return
        host, port = address = next(iter(faults))
        try:
            wanted = await self.pool.mechanisms(address, min(self.timeout, _JUDGING_SECONDS))
        except WireError:
            return
        if wanted:
            protocol = _WITH_LOGIN[protocol_of(self.pool.network)]
            raise Untrusted(_LOG_IN.format(address_text(host, port), ", ".join(wanted), protocol.name))

    async def _ask_controller(self, call: Call[R], *, changes: bool) -> R:
        deadline, pause = trio.current_time() + self.timeout, RETRY_SECONDS
        while True:
            address = await self._find_controller(deadline)
            left = max(deadline - trio.current_time(), 0)
            try:
                if changes:
                    return await self._change(address, call, left)
                return await self._ask_at(address, call, min(left, ATTEMPT_SECONDS))
            except _ANSWER_IS_LOST as error:
                fault: Exception = error
            except ApiError as error:
                if error.code not in _NOTHING_WAS_DONE:
                    raise
                fault = error
            self._controller = None
            if trio.current_time() + pause >= deadline:
                raise fault
            await trio.sleep(pause)
            pause = min(2 * pause, MAX_RETRY_SECONDS)

    async def _change(self, address: Address, call: Call[R], seconds: float) -> R:
        """Send a change once. Raises ConnectionBroken if it was certainly not sent, OutcomeUnknown if it may have been.

        It gets a connection of its own: the end of one that was idle would look like a lost answer.
        """
        await self.pool.drop(address)
        with self._advertised(address):
            await self.pool.connected(address, min(seconds, ATTEMPT_SECONDS))
        try:
            return await self._ask_at(address, call, seconds)
        except _ANSWER_IS_LOST as error:
            raise OutcomeUnknown(f"{error}; it may have been done or not: look before you ask again") from error

    async def _ask_at(self, address: Address, call: Call[R], seconds: float) -> R:
        """Ask a node. Raises RequestTimedOut also if it waited for the controller in vain, as brokers of KRaft do."""
        try:
            with self._advertised(address):
                return await self.pool.ask(address, call, seconds)
        except ApiError as error:
            if error.code is not ErrorCode.REQUEST_TIMED_OUT:
                raise
            host, port = address
            raise RequestTimedOut(f"{address_text(host, port)} got no answer of the controller in time") from error

    @contextmanager
    def _advertised(self, address: Address) -> Iterator[None]:
        """Add to a fault of an address that was not typed where it comes from."""
        try:
            yield
        except ConnectionBroken as error:
            broker = next((id_ for id_, at in self._brokers.items() if at == address), None)
            if broker is None or address in self.bootstrap or isinstance(error, NoToken):
                raise
            raise type(error)(f"{error} (advertised by broker {broker} as {address_text(*address)})") from error


@asynccontextmanager
async def open_kafka_cluster(
    network: Network,
    bootstrap: Sequence[Address],
    timeout: float,  # noqa: ASYNC109  of each call
) -> AsyncIterator[KafkaCluster]:
    """Keep connections to the nodes of a cluster of Kafka's for the block."""
    async with open_node_pool(network, "klamm-admin") as pool:
        yield KafkaCluster(pool, bootstrap, timeout)
