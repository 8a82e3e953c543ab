"""Requests to the active controller: finding it, following it when it changes, and sending again what was not taken.

A request that was certainly not carried out (NOT_CONTROLLER, no connection) is retried until `timeout`. One that may
have been carried out is retried only if it only reads: repeating a change after its answer was lost might undo a
concurrent change, and a repeated cancel would report that nothing is in progress. Such a change raises OutcomeUnknown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from itertools import chain
from math import inf
from typing import Final, Protocol, TypeVar

import trio
from attrs import define, field, frozen
from msgspec.structs import replace

from transport.addresses import Address, address_text
from transport.errors import ApiError, ErrorCode
from transport.messages import BrokerEndpoint, MetadataRequest, Request
from transport.network import Network
from transport.store import paths
from transport.store.controllers import find_controller
from transport.store.formats import UndecodableZnode
from transport.store.kafka_office import Writer, decode_holder
from transport.store.protocol import ConnectionLost, MetadataStore, SessionExpired
from transport.wire import Connection, ConnectionBroken, RequestTimedOut, WireError, open_connection

R = TypeVar("R")

RETRY_SECONDS: Final = 0.2
MAX_RETRY_SECONDS: Final = 1.0
"""Until a controller takes a request, the pause between two attempts doubles up to this, as in Kafka's clients."""

ATTEMPT_SECONDS: Final = 5.0

_NONE_KNOWN: Final = "it knows no active controller"
_ANSWER_IS_LOST: Final = (ConnectionBroken, RequestTimedOut)
_NOTHING_WAS_DONE: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED)


class ClusterUnreachable(Exception):
    """No node could name the active controller; the message lists the nodes asked and gives the remedy."""


class OutcomeUnknown(WireError):
    """The answer to a change was lost: it may have been carried out or not; the message says so."""


class _Wait(Protocol):
    """Sends a request over a connection to the controller and waits for its answer, for up to `left` seconds."""

    async def __call__(
        self, connection: Connection, controller: BrokerEndpoint, request: Request[R], left: float, /
    ) -> R: ...


class _NotTaken(Exception):
    """The request was not taken, so it can be retried safely."""

    def __init__(self, reason: ApiError | ConnectionBroken) -> None:
        super().__init__(str(reason))
        self.reason = reason


@define(eq=False)
class _Search:
    """The search for the controller: one task at a time searches, and those that wait meanwhile share what it finds."""

    turn: trio.Lock = field(factory=trio.Lock)
    faults: dict[Address, str] = field(factory=dict)
    """The latest error or unhelpful answer of each address."""

    _found: BrokerEndpoint | None = None
    _found_at: float = -inf

    def ended(self, controller: BrokerEndpoint) -> None:
        """Keep the result for those that wait."""
        self._found, self._found_at = controller, trio.current_time()

    def found_since(self, then: float) -> BrokerEndpoint | None:
        """Return the controller if a search has found it since `then`."""
        return self._found if self._found_at >= then else None


@frozen
class ActiveController:
    """The active controller of a cluster, found through the nodes at `bootstrap`, or in `store` if that is not None.

    `timeout` limits each request, in seconds.
    """

    network: Network
    bootstrap: Sequence[Address]
    store: MetadataStore | None
    timeout: float
    _search: _Search = field(factory=_Search, kw_only=True)

    async def find_controller(self) -> BrokerEndpoint:
        """Return the address of the active controller. Raises ClusterUnreachable if it cannot be found in time."""
        return await self._find(trio.current_time() + self.timeout)

    async def _ask(self, request: Request[R], *lists: str) -> R:
        """Send a read-only request until it is answered: if a controller hangs, the next one may answer.

        A request that is too large is sent in several parts; the named lists of the answers are joined.
        """
        return await _in_parts(self._ask_one, request, *lists)

    async def _ask_one(self, request: Request[R]) -> R:
        deadline = trio.current_time() + self.timeout
        while True:
            try:
                return await self._ask_active(request, deadline, self._wait_a_while)
            except _ANSWER_IS_LOST:
                if trio.current_time() >= deadline:
                    raise
            await trio.sleep(RETRY_SECONDS)

    async def _change(self, request: Request[R], *lists: str) -> R:
        """Send a change to one controller only, and wait for its answer unless another controller takes office.

        A request that is too large is sent in several parts; the named lists of the answers are joined.
        """
        return await _in_parts(self._change_once, request, *lists)

    async def _change_once(self, request: Request[R]) -> R:
        deadline = trio.current_time() + self.timeout
        try:
            return await self._ask_active(request, deadline, self._wait_while_active)
        except _ANSWER_IS_LOST as error:
            raise OutcomeUnknown(f"{error}; it may have been done or not: look before you ask again") from error

    async def _ask_active(self, request: Request[R], deadline: float, wait: _Wait) -> R:
        """Send a request until a controller takes it, and wait for the answer with `wait`."""
        pause = RETRY_SECONDS
        while True:
            try:
                return await self._ask_once(request, deadline, wait)
            except _NotTaken as refusal:
                if trio.current_time() >= deadline:
                    raise refusal.reason from None
            await trio.sleep_until(min(trio.current_time() + pause, deadline))
            pause = min(2 * pause, MAX_RETRY_SECONDS)

    async def _ask_once(self, request: Request[R], deadline: float, wait: _Wait) -> R:
        controller = await self._find(deadline)
        left = max(deadline - trio.current_time(), 0)
        async with AsyncExitStack() as stack:
            try:
                connecting = self._connect((controller.host, controller.port), min(left, ATTEMPT_SECONDS))
                connection = await stack.enter_async_context(connecting)
            except ConnectionBroken as error:
                raise _NotTaken(self._advertised(controller, error)) from error
            left = max(deadline - trio.current_time(), 0)
            try:
                return await wait(connection, controller, request, left)
            except ApiError as error:
                if error.code is ErrorCode.REQUEST_TIMED_OUT:
                    raise RequestTimedOut(error.message) from error
                if error.code in _NOTHING_WAS_DONE:
                    raise _NotTaken(error) from error
                raise

    def _advertised(self, controller: BrokerEndpoint, error: ConnectionBroken) -> ConnectionBroken:
        """Return the fault of a controller's address; one that was not typed is said to be the controller's own."""
        if (controller.host, controller.port) in self.bootstrap:
            return error
        at = address_text(controller.host, controller.port)
        return type(error)(f"{error} (advertised by controller {controller.id} as {at})")

    async def _wait_a_while(self, connection: Connection, _: BrokerEndpoint, request: Request[R], left: float) -> R:
        return await connection.call(request, timeout=min(left, ATTEMPT_SECONDS))

    async def _wait_while_active(
        self, connection: Connection, controller: BrokerEndpoint, request: Request[R], left: float
    ) -> R:
        """Wait for up to `left` seconds. Raises RequestTimedOut as soon as another controller is in office.

        A paused controller that has lost its office answers only when it resumes, which may be never.
        """
        fault: ApiError | WireError = RequestTimedOut(
            f"controller {controller.id} did not answer, and it is no longer the active one"
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_when_replaced, controller, nursery.cancel_scope)
            try:
                return await connection.call(request, timeout=left)
            except (ApiError, WireError) as error:
                fault = error
            finally:
                nursery.cancel_scope.cancel()
        raise fault

    async def _cancel_when_replaced(self, controller: BrokerEndpoint, scope: trio.CancelScope) -> None:
        found: BrokerEndpoint | None = controller
        while found in (controller, None):
            await trio.sleep(ATTEMPT_SECONDS)
            with suppress(UndecodableZnode):
                found = await self._look_up({})
        scope.cancel()

    async def _find(self, deadline: float) -> BrokerEndpoint:
        began, search, pause = trio.current_time(), self._search, RETRY_SECONDS
        with trio.move_on_at(deadline):
            async with search.turn:
                found = search.found_since(began)
                if found is not None:
                    return found
                search.faults.clear()
                while (found := await self._look_up(search.faults)) is None:
                    await trio.sleep(pause)
                    pause = min(2 * pause, MAX_RETRY_SECONDS)
                search.ended(found)
                return found
        raise ClusterUnreachable(await self._nobody(search.faults))

    async def _look_up(self, faults: dict[Address, str]) -> BrokerEndpoint | None:
        """Ask the addresses for the controller; their latest errors and unhelpful answers are stored in `faults`."""
        if self.store is not None:
            try:
                return await find_controller(self.store)
            except (ConnectionLost, SessionExpired):
                return None
        for address in self.bootstrap:
            try:
                answer = await self._call(address, MetadataRequest(()), min(self.timeout, ATTEMPT_SECONDS))
            except (ApiError, WireError) as error:
                faults[address] = str(error)
                continue
            if answer.controller is not None:
                return answer.controller
            faults[address] = _NONE_KNOWN
        return None

    async def _nobody(self, faults: Mapping[Address, str]) -> str:
        if self.store is not None or _NONE_KNOWN in faults.values():
            other = None if self.store is None else await _kafkas_controller(self.store)
            return other or "no controller is active: start one with `klamm controller run`"
        asked = ", ".join(address_text(host, port) for host, port in self.bootstrap)
        why = "; ".join(faults.values()) or f"no answer within {self.timeout:g} s"
        return f"no active controller was found through {asked}: {why}"

    async def _call(self, address: Address, request: Request[R], patience: float) -> R:
        async with self._connect(address, patience) as connection:
            return await connection.call(request, timeout=patience)

    def _connect(self, address: Address, patience: float) -> AbstractAsyncContextManager[Connection]:
        """Open a connection for one request; requests are rare, so none is kept open between them."""
        host, port = address
        return open_connection(self.network, host, port, client_id="admin", connect_timeout=patience)


async def _kafkas_controller(store: MetadataStore) -> str | None:
    """Return that a controller of Kafka's is in office, and what to do; None if it is ours, or not known."""
    with suppress(ConnectionLost, SessionExpired, UndecodableZnode):
        [znode] = await store.read([paths.CONTROLLER])
        holder = None if znode is None else decode_holder(znode)
        if holder is None or holder.writer is Writer.KLAMM:
            return None
        # Among brokers of ours, a controller does not say who has written the znode, but has an endpoint.
        if await store.read([paths.controller_endpoint(holder.controller_id)]) == [None]:
            who = f"{holder.writer.value}'s controller {holder.controller_id} is in office"
            return f"{who}: ask its brokers, with --bootstrap-server instead of --zookeeper"
    return None


async def _in_parts(ask: Callable[[Request[R]], Awaitable[R]], request: Request[R], *lists: str) -> R:
    """Send a request, in several parts if it is too large for one, and join the named lists of the answers."""
    answers = [await ask(part) for part in request.parts()]
    if len(answers) == 1:
        return answers[0]
    joined = {name: tuple(chain.from_iterable(getattr(answer, name) for answer in answers)) for name in lists}
    return replace(answers[0], **joined)  # type: ignore[type-var]
