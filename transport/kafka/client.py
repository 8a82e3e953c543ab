"""The client of Kafka's protocol: one connection, one request at a time, in the versions that both ends have."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, TypeVar

import trio

from transport.errors import ErrorCode
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.codec import decode, encode
from transport.kafka.header import RequestHeader, pack_request, response_correlation_id, unpack_response
from transport.kafka.login import Login
from transport.kafka.messages import ApiVersionsRequest, ApiVersionsResponse
from transport.kafka.schema import Message, Versions
from transport.security.sasl import SaslLogin
from transport.wire.client import REQUEST_TIMEOUT_SECONDS
from transport.wire.errors import ConnectionBroken, UnsupportedApi
from transport.wire.exchange import Ask, Exchange

M = TypeVar("M", bound=Message)

_SOFTWARE_NAME: Final = "klamm"
_SOFTWARE_VERSION: Final = "1"
_HANDSHAKE_VERSION: Final = 3
"""Of ApiVersions. A server that has no such version answers in version 0, with those that it has (KIP-511)."""

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""The limit of one answer. That of LeaderAndIsr for 200,000 partitions takes 2 MiB."""

_UNSUPPORTED: Final = Struct(">h").pack(ErrorCode.UNSUPPORTED_VERSION)


def _unpack(payload: bytes) -> tuple[int, bytes]:
    """Return the correlation id of an answer, and the whole of it: its header depends on the request."""
    return response_correlation_id(payload), payload


class KafkaConnection:
    """A connection to one Kafka server, which sends and returns Kafka's own messages."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        *,
        peer: str,
        client_id: str,
        login: SaslLogin | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        """Take over a stream; `peer` is the name of the other end in errors. Call `negotiate` first.

        With a `login`, the client logs in by SASL, and does so again before the server ends its session.
        """
        self._exchange = Exchange(stream, peer, _unpack, max_answer_bytes=max_answer_bytes)
        self._peer = peer
        self._client_id = client_id
        self._offered: Mapping[int, Versions] = {}
        self._login = None if login is None else Login(login, peer)

    async def negotiate(self, *, timeout: float = REQUEST_TIMEOUT_SECONDS) -> None:  # noqa: ASYNC109
        """Ask the server for the versions that it has, and log in. Raises the exceptions of `send`."""
        asked = ApiVersionsRequest(_SOFTWARE_NAME, _SOFTWARE_VERSION)
        offered = await self.send(asked, ApiVersionsResponse, _HANDSHAKE_VERSION, timeout=timeout)
        if offered.error_code == ErrorCode.UNSUPPORTED_VERSION:
            versions = {api.api_key: api.max_version for api in offered.api_keys}
            version = min(versions.get(ApiVersionsRequest.api_key, 0), _HANDSHAKE_VERSION - 1)
            offered = await self.send(ApiVersionsRequest(), ApiVersionsResponse, version, timeout=timeout)
        if offered.error_code != ErrorCode.NONE:
            raise ConnectionBroken(f"{self._peer} refused to name its versions: error {offered.error_code}")
        self._offered = {api.api_key: Versions(api.min_version, api.max_version) for api in offered.api_keys}
        await self._exchange.converse(self._log_in_if_due, api="SaslHandshake", timeout=timeout)

    @property
    def offered(self) -> Mapping[int, Versions]:
        """The versions that the server has, by the keys of apis."""
        return self._offered

    def version_of(self, request: type[Message], *, at_most: int | None = None) -> int:
        """Return the highest version of a kind of request that both ends have. Raises UnsupportedApi."""
        ours, theirs = request.versions, self._offered.get(request.api_key)
        name = KAFKA_APIS[request.api_key].name
        if theirs is None:
            raise UnsupportedApi(f"{self._peer} does not offer {name}")
        highest = min(ours.last, theirs.last, ours.last if at_most is None else at_most)
        if highest < max(ours.first, theirs.first):
            raise UnsupportedApi(f"{self._peer} offers {name} in versions {theirs.first} to {theirs.last} only")
        return highest

    async def send(
        self,
        request: Message,
        response: type[M],
        version: int,
        *,
        timeout: float = REQUEST_TIMEOUT_SECONDS,  # noqa: ASYNC109  as in the client of our own wire
    ) -> M:
        """Send a request in a version and return its response; `timeout`, in seconds, includes the wait for a turn.

        Raises CodecError or FrameTooLarge if the request cannot be sent; Untrusted if the server refuses the login;
        RequestTimedOut or ConnectionBroken if there is no answer.
        """

        async def talk(ask: Ask[bytes]) -> M:
            if type(request) is not ApiVersionsRequest:
                await self._log_in_if_due(ask)
            return await self._ask(ask, request, response, version)

        api = KAFKA_APIS[request.api_key].name
        return await self._exchange.converse(talk, api=api, timeout=timeout)

    async def close(self) -> None:
        """Close the connection. A call in progress raises ConnectionBroken."""
        await self._exchange.close()

    async def _ask(self, ask: Ask[bytes], request: Message, response: type[M], version: int) -> M:
        body, kind = encode(request, version), type(request)

        def pack(number: int) -> bytes:
            header = RequestHeader(kind.api_key, version, number, self._client_id)
            return pack_request(kind, header, body)

        return await ask(pack, lambda payload: _read(response, version, payload))

    async def _log_in_if_due(self, ask: Ask[bytes]) -> None:
        if self._login is None or not self._login.is_due:
            return

        async def send(request: Message, response: type[M]) -> M:
            return await self._ask(ask, request, response, self.version_of(type(request)))

        try:
            await self._login.log_in(send)
        except BaseException:
            await self._exchange.close()
            raise


def _read(response: type[M], version: int, payload: bytes) -> M:
    _, body = unpack_response(response, version, payload)
    # A server without this version of ApiVersions says so in version 0 (KIP-511).
    is_refused = response is ApiVersionsResponse and body[: len(_UNSUPPORTED)] == _UNSUPPORTED
    return decode(response, 0 if is_refused else version, body)
