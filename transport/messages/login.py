"""The messages of a login by SASL, which come before all others and are in no table of apis."""

from __future__ import annotations

from transport.messages.common import Message, Request


class SaslHandshakeResponse(Message, frozen=True):
    """The mechanisms that the server offers. The client's is one of them, or the answer is an ApiError."""

    mechanisms: tuple[str, ...]


class SaslHandshakeRequest(Request[SaslHandshakeResponse], frozen=True):
    """The mechanism that the client wants to use."""

    mechanism: str


class SaslAuthenticateResponse(Message, frozen=True):
    """The server's next message of the mechanism."""

    message: bytes
    is_done: bool


class SaslAuthenticateRequest(Request[SaslAuthenticateResponse], frozen=True):
    """The client's next message of the mechanism."""

    message: bytes
