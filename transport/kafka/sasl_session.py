"""The server's end of a client's login by SASL over Kafka's protocol (KIP-43, KIP-152)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from transport.errors import ErrorCode
from transport.kafka.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from transport.kafka.schema import Message
from transport.security.errors import AuthenticationFailed
from transport.security.sasl import SaslExchange, SaslServer

_LOGGED_IN: Final = "The connection has logged in already."
_NO_HANDSHAKE: Final = "SaslAuthenticate has to follow SaslHandshake."
_REFUSED: Final = "The user name or the password is wrong."


class SaslSession:
    """The login of one connection: `user` once it has succeeded, `failure` once it has not."""

    def __init__(self, server: SaslServer) -> None:
        """Wait for a client to begin."""
        self.user: str | None = None
        self.failure: str | None = None
        self._server = server
        self._exchange: SaslExchange | None = None
        self._is_bare = False

    @property
    def takes_bare_messages(self) -> bool:
        """Whether frames have the client's messages alone, as after version 0 of the handshake."""
        return self._is_bare and self.user is None

    @property
    def answers(self) -> Mapping[type[Message], Callable[[int, Any], Awaitable[Message]]]:
        """The handlers of the requests of SASL, given their version."""
        return {SaslHandshakeRequest: self._handshake, SaslAuthenticateRequest: self._authenticate}

    async def respond(self, message: bytes) -> bytes:
        """Return the answer to the client's next message. Raises AuthenticationFailed."""
        assert self._exchange is not None
        answer = await self._exchange.respond(message)
        self.user = self._exchange.user
        return answer

    async def _handshake(self, version: int, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        if self.user is not None:
            return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE, self._server.mechanisms)
        try:
            self._exchange = self._server.start(request.mechanism)
        except AuthenticationFailed as error:
            self.failure = str(error)
            return SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, self._server.mechanisms)
        self._is_bare = version == 0
        return SaslHandshakeResponse(mechanisms=self._server.mechanisms)

    async def _authenticate(self, _version: int, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        if self.user is not None:
            return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, _LOGGED_IN)
        if self._exchange is None:
            self.failure = _NO_HANDSHAKE
            return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, _NO_HANDSHAKE)
        try:
            return SaslAuthenticateResponse(error_message=None, auth_bytes=await self.respond(request.auth_bytes))
        except AuthenticationFailed as error:
            self.failure = str(error)
            return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, _REFUSED)
