"""The client of the wire: one connection, one request at a time."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar, cast

import trio

from transport.addresses import address_text
from transport.errors import ApiError, ErrorCode
from transport.messages import Api, ApiVersionsRequest, ApiVersionsResponse, Request
from transport.network import Network
from transport.security.errors import SecurityError, TokenUnavailable
from transport.security.tls import fault_of
from transport.wire.apis import OURS, ApiTable
from transport.wire.codec import decode, encode
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.errors import (
    ConnectionBroken,
    NoToken,
    NotServed,
    RequestTimedOut,
    UnexpectedTls,
    UnsupportedApi,
    Untrusted,
)
from transport.wire.exchange import Exchange

C = TypeVar("C", bound="Negotiable")
R = TypeVar("R")

REQUEST_TIMEOUT_SECONDS: Final = 30.0

RACE_SECONDS: Final = 1.0
"""The time that one address of a host has for all steps of a connection before the next one is tried as well."""

_NEGOTIATION: Final[Mapping[type[Request[Any]], int]] = MappingProxyType({ApiVersionsRequest: 0})

_FAILURES: Final = (
    OSError,
    SecurityError,
    ApiError,
    ConnectionBroken,
    RequestTimedOut,
    trio.TooSlowError,
    trio.BrokenResourceError,
)
"""The errors that end the attempt to connect."""


class Connection:
    """A connection to one server. Callers queue up, and one request is in flight at a time.

    A call that is cancelled or times out closes the connection if its request was in flight.
    """

    def __init__(self, stream: trio.abc.Stream, *, peer: str, client_id: str, apis: ApiTable = OURS) -> None:
        """Take over a stream; `peer` is the name of the other end in errors. Call `negotiate` first."""
        self._exchange = Exchange(stream, peer, _unpack)
        self._peer = peer
        self._client_id = client_id
        self._apis = apis
        self._versions = _NEGOTIATION

    async def negotiate(self, *, timeout: float = REQUEST_TIMEOUT_SECONDS) -> None:  # noqa: ASYNC109
        """Agree with the server on the highest common version of each api. Raises the exceptions of `call`."""
        offered = await self.call(ApiVersionsRequest(), timeout=timeout)
        self._versions = {**_NEGOTIATION, **_common_versions(self._apis, offered)}

    async def call(self, request: Request[R], *, timeout: float = REQUEST_TIMEOUT_SECONDS) -> R:  # noqa: ASYNC109
        """Send a request and return its response; `timeout`, in seconds, includes the wait for the caller's turn.

        Raises ApiError if the server answers with one; UnsupportedApi, CodecError or FrameTooLarge if the request
        cannot be sent to this server; RequestTimedOut or ConnectionBroken if there is no answer.
        """
        api = self._apis.by_request[type(request)]
        version = self._versions.get(api.request)
        if version is None:
            raise UnsupportedApi(f"{self._peer} does not offer {api.name} in versions {_version_range(api)}")
        if version < request.least_version:
            raise UnsupportedApi(f"{self._peer} offers {api.name} up to version {version}, which cannot do this")
        body = encode(request)

        def pack(number: int) -> bytes:
            return RequestEnvelope(api.key, version, number, self._client_id, body).pack()

        found = await self._exchange.ask(pack, partial(_read, api), api=api.name, timeout=timeout)
        if isinstance(found, ApiError):
            raise found
        return cast("R", found)

    async def close(self) -> None:
        """Close the connection. A call in progress raises ConnectionBroken."""
        await self._exchange.close()


def _unpack(payload: bytes) -> tuple[int, ResponseEnvelope]:
    response = ResponseEnvelope.unpack(payload)
    return response.correlation_id, response


def _read(api: Api, response: ResponseEnvelope) -> object:
    """Return the message of a response, or the ApiError that it stands for."""
    if response.error != ErrorCode.NONE:
        return ApiError(_known_code(response.error), decode(str, response.body))
    return decode(api.response, response.body)


@asynccontextmanager
async def open_connection(
    network: Network,
    host: str,
    port: int,
    *,
    client_id: str,
    connect_timeout: float = REQUEST_TIMEOUT_SECONDS,
    own_apis: Iterable[Api] = (),
) -> AsyncIterator[Connection]:
    """Connect, negotiate versions, and close the connection after the block, whose exceptions propagate.

    `connect_timeout`, in seconds, covers both steps. `own_apis` has the service's apis besides ours. Raises
    ConnectionBroken if either step fails, or its subclass NotServed if a retry would fail as well.
    """
    apis = ApiTable.of(own_apis) if own_apis else OURS
    make = partial(Connection, peer=address_text(host, port), client_id=client_id, apis=apis)
    connection = await connect(network, host, port, make, connect_timeout)
    try:
        yield connection
    finally:
        await connection.close()


class Negotiable(Protocol):
    """A connection that begins with an agreement on versions."""

    async def negotiate(self, *, timeout: float) -> None:  # noqa: ASYNC109
        """Agree with the server on versions."""

    async def close(self) -> None:
        """Close the connection."""


async def connect(
    network: Network, host: str, port: int, make: Callable[[trio.abc.Stream], C], connect_timeout: float
) -> C:
    """Connect and negotiate versions, as described at `open_connection`.

    If the host has several addresses, they take part in a race until one has negotiated (Happy Eyeballs, RFC 8305):
    an address may accept connections and stay silent.
    """

    async def attempt(address: str) -> C:
        connection = make(await network.connect(host, port, address))
        try:
            await connection.negotiate(timeout=connect_timeout)
        except BaseException:
            await connection.close()
            raise
        return connection

    peer = address_text(host, port)
    try:
        with trio.fail_after(connect_timeout):
            addresses = await network.addresses(host)
            return await (_first(attempt, addresses) if len(addresses) > 1 else attempt(addresses[0]))
    except (Untrusted, NoToken):
        raise
    except _FAILURES as error:
        raise _failure(peer, host, error, connect_timeout) from error


async def _first(attempt: Callable[[str], Awaitable[C]], addresses: Sequence[str]) -> C:
    """Return the first connection. Attempts begin one after the other, when the one before fails or takes long.

    Raises the fault of the first address if there is no connection.
    """
    connections: list[C] = []
    faults: dict[str, Exception] = {}

    async def take_part(address: str, over: trio.Event) -> None:
        try:
            connections.append(await attempt(address))
            nursery.cancel_scope.cancel()
        except Exception as fault:  # noqa: BLE001  raised below, or of no interest
            faults[address] = fault
        over.set()

    async with trio.open_nursery() as nursery:
        for address in addresses:
            over = trio.Event()
            nursery.start_soon(take_part, address, over)
            with trio.move_on_after(RACE_SECONDS):
                await over.wait()
    # Two may have won at the same moment.
    for late in connections[1:]:
        await late.close()
    if connections:
        return connections[0]
    raise faults[addresses[0]]


def _failure(peer: str, host: str, error: Exception, connect_timeout: float) -> ConnectionBroken:
    """Return what to tell about a connection that could not be made."""
    distrust = _distrust(error)
    if distrust:
        return Untrusted(f"cannot connect to {peer}: {distrust}")
    match error:
        case socket.gaierror():
            return NotServed(f"cannot connect to {peer}: the host {host} cannot be found ({error.strerror})")
        case ConnectionRefusedError():
            return NotServed(f"cannot connect to {peer}: nothing listens there")
        case OSError():
            return ConnectionBroken(f"cannot connect to {peer}: {error.strerror or error}")
        case TokenUnavailable():
            return NoToken(str(error))
        case ConnectionBroken():
            return NotServed(f"{peer} does not answer as a broker or controller does ({error})")
        case trio.TooSlowError():
            return ConnectionBroken(f"cannot connect to {peer}: no answer within {connect_timeout:g} s")
        case trio.BrokenResourceError():
            return ConnectionBroken(f"cannot connect to {peer}: the connection broke")
    return ConnectionBroken(f"cannot agree with {peer} on versions: {error}")


def _distrust(error: Exception) -> str | None:
    """Return which security failed, or is there at one end only; None for other errors."""
    match error:
        case SecurityError() if not isinstance(error, TokenUnavailable):
            return str(error)
        case ApiError(code=ErrorCode.ILLEGAL_SASL_STATE):
            return error.message
        case ConnectionBroken(__cause__=trio.BrokenResourceError(__cause__=Exception() as cause)):
            # A server of TLS 1.3 refuses a client's certificate after the client's handshake.
            return fault_of(cause)
        case ConnectionBroken(__cause__=UnexpectedTls() as cause):
            return str(cause)
    return None


def _common_versions(apis: ApiTable, offered: ApiVersionsResponse) -> dict[type[Request[Any]], int]:
    versions: dict[type[Request[Any]], int] = {}
    for theirs in offered.apis:
        ours = apis.by_key.get(theirs.api_key)
        # A newer server may offer apis that are unknown here.
        if ours is None:
            continue
        lowest = max(ours.min_version, theirs.min_version)
        highest = min(ours.max_version, theirs.max_version)
        if lowest <= highest:
            versions[ours.request] = highest
    return versions


def _known_code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _version_range(api: Api) -> str:
    return f"{api.min_version} to {api.max_version}"
