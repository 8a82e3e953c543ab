"""A client's login by SASL over Kafka's protocol (KIP-152), and again before its session ends (KIP-368)."""

from __future__ import annotations

from collections.abc import Generator
from math import inf
from typing import Final, Protocol, TypeVar

import trio

from transport.errors import ErrorCode
from transport.kafka.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from transport.kafka.schema import Message
from transport.security.errors import AuthenticationFailed, TokenUnavailable
from transport.security.sasl import SaslLogin
from transport.wire.errors import NoToken, Untrusted

M = TypeVar("M", bound=Message)

_RENEWED_AFTER: Final = 0.85
"""The part of a session's time after which the client logs in again, as Kafka's clients do."""


class Send(Protocol):
    """One request to the server and its response."""

    async def __call__(self, request: Message, response: type[M]) -> M:
        """Send a request in the highest version that both ends have, and return its response."""


class Login:
    """The login of one connection. It is due at once, and again when most of the session's time has passed."""

    def __init__(self, login: SaslLogin, peer: str) -> None:
        self._login = login
        self._peer = peer
        self._due_at = -inf

    @property
    def is_due(self) -> bool:
        """Whether the client has to log in before its next request."""
        return trio.current_time() >= self._due_at

    async def log_in(self, send: Send) -> None:
        """Log in. Raises Untrusted if one end does not convince the other, and what `send` raises.

        Raises NoToken if a token is needed and cannot be had for now.
        """
        exchange = await self._start()
        handshake = await send(SaslHandshakeRequest(self._login.mechanism), SaslHandshakeResponse)
        self._check(handshake)
        started_at, milliseconds = trio.current_time(), 0
        message: bytes | None = next(exchange)
        while message is not None:
            answer = await send(SaslAuthenticateRequest(message), SaslAuthenticateResponse)
            if answer.error_code != ErrorCode.NONE:
                raise self._untrusted(answer.error_message or f"error {answer.error_code}")
            milliseconds = answer.session_lifetime_ms
            message = self._next(exchange, answer.auth_bytes)
        self._due_at = started_at + _RENEWED_AFTER * milliseconds / 1000 if milliseconds > 0 else inf

    async def _start(self) -> Generator[bytes, bytes, None]:
        """Begin before anything is sent: a token may have to be fetched, and servers do not wait for long."""
        try:
            return await self._login.start()
        except TokenUnavailable as error:
            raise NoToken(str(error)) from error
        except AuthenticationFailed as error:
            raise Untrusted(str(error)) from None

    def _next(self, exchange: Generator[bytes, bytes, None], challenge: bytes) -> bytes | None:
        try:
            return exchange.send(challenge)
        except StopIteration:
            return None
        except AuthenticationFailed as error:
            raise self._untrusted(str(error)) from None

    def _check(self, handshake: SaslHandshakeResponse) -> None:
        match handshake.error_code:
            case ErrorCode.NONE:
                return
            case ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                offered = ", ".join(handshake.mechanisms)
                fault = f"does not offer {self._login.mechanism}: set sasl.mechanism to one of {offered}"
            case ErrorCode.ILLEGAL_SASL_STATE:
                fault = "does not use SASL on this listener: set security.protocol to PLAINTEXT or SSL"
            case code:
                fault = f"refused to start SASL: error {code}"
        raise Untrusted(f"{self._peer} {fault}")

    def _untrusted(self, reason: str) -> Untrusted:
        user, mechanism = self._login.login.user, self._login.mechanism
        words = self._login.refusal(reason).rstrip(".")
        return Untrusted(f"the login of {user} at {self._peer} by {mechanism} failed ({words}): {self._login.cure}")
