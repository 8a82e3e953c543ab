"""A login by SASL over our own wire. It comes before everything else, also before the agreement on versions.

Its requests have the keys that they have in Kafka, version 0, and no other ones may come before them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

import trio

from transport.errors import ApiError, ErrorCode
from transport.messages.common import Message, Request
from transport.messages.login import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from transport.security.errors import AuthenticationFailed, SecurityError
from transport.security.principal import USER, Principal
from transport.security.sasl import (
    LOGIN_SECONDS,
    MAX_MESSAGE_BYTES,
    REFUSAL_SECONDS,
    SaslExchange,
    SaslLogin,
    SaslServer,
)
from transport.wire.codec import decode, encode
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope, is_kafkas
from transport.wire.errors import CodecError, FrameError, UnexpectedTls
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame

R = TypeVar("R", bound=Message)

_KEYS: Final = {SaslHandshakeRequest: 17, SaslAuthenticateRequest: 36}
_HANDSHAKE, _AUTHENTICATE = _KEYS.values()
_REFUSED: Final = "The user name or the password is wrong."
_NEEDED: Final = "a login by SASL is needed here: set security.protocol to SASL_PLAINTEXT or SASL_SSL"


# --- the client -------------------------------------------------------------------------------------------------


async def log_in(stream: trio.abc.Stream, login: SaslLogin) -> None:
    """Log in at a server. Raises AuthenticationFailed, TokenUnavailable, and trio's stream errors."""
    frames = FrameStream(stream, MAX_MESSAGE_BYTES)
    exchange = await login.start()
    try:
        await _ask(frames, SaslHandshakeRequest(login.mechanism), SaslHandshakeResponse)
        message: bytes | None = next(exchange)
        while message is not None:
            answer = await _ask(frames, SaslAuthenticateRequest(message), SaslAuthenticateResponse)
            message = _next(exchange, answer)
    except ApiError as refusal:
        if refusal.code is ErrorCode.UNSUPPORTED_VERSION:
            raise AuthenticationFailed("it does not use SASL: set security.protocol to PLAINTEXT or SSL") from None
        raise _failed(login, refusal.message) from None
    except SecurityError as error:
        raise _failed(login, str(error)) from None
    except UnexpectedTls as error:
        raise AuthenticationFailed(str(error)) from None
    except (CodecError, FrameError) as error:
        raise AuthenticationFailed(f"it does not answer as a broker or controller does ({error})") from None


def _next(exchange: Generator[bytes, bytes, None], answer: SaslAuthenticateResponse) -> bytes | None:
    try:
        message = exchange.send(answer.message)
    except StopIteration:
        if answer.is_done:
            return None
        raise AuthenticationFailed("the server goes on after the last message") from None
    if answer.is_done:
        raise AuthenticationFailed("the server has not proved that it knows the user")
    return message


def _failed(login: SaslLogin, reason: str) -> AuthenticationFailed:
    user, mechanism = login.login.user, login.mechanism
    return AuthenticationFailed(
        f"the login of {user} by {mechanism} failed ({reason.rstrip('.')}): check sasl.mechanism and sasl.jaas.config"
    )


async def _ask(frames: FrameStream, request: Request[R], response: type[R]) -> R:
    key = _KEYS[type(request)]
    await frames.send(frame(RequestEnvelope(key, 0, key, "", encode(request)).pack()))
    payload = await frames.receive()
    if payload is None:
        raise AuthenticationFailed("the server closed the connection")
    answer = ResponseEnvelope.unpack(payload)
    if answer.error != ErrorCode.NONE:
        raise ApiError(ErrorCode(answer.error), decode(str, answer.body))
    return decode(response, answer.body)


# --- the server -------------------------------------------------------------------------------------------------


async def admit(stream: trio.abc.Stream, server: SaslServer) -> Principal | None:
    """Let a client log in, and return who it is; None if it ends the stream before.

    Raises AuthenticationFailed once the client has been told, and trio's stream errors.
    """
    frames = FrameStream(stream, MAX_MESSAGE_BYTES)
    exchange: SaslExchange | None = None
    with trio.move_on_after(LOGIN_SECONDS):
        while exchange is None or exchange.user is None:
            request = await _receive(frames)
            if request is None:
                return None
            try:
                exchange, answer = await _answer(server, exchange, request)
            except CodecError as error:
                raise _no_login(error) from None
            except ApiError as refusal:
                await _refuse(frames, request, refusal)
                raise AuthenticationFailed(str(refusal.__cause__ or refusal.message)) from None
            await frames.send(frame(ResponseEnvelope(request.correlation_id, ErrorCode.NONE, encode(answer)).pack()))
        if frames.has_more:
            raise AuthenticationFailed("it sent more before it was told that it has logged in")
        return Principal(USER, exchange.user)
    raise AuthenticationFailed(f"it took more than {LOGIN_SECONDS} s")


async def _receive(frames: FrameStream) -> RequestEnvelope | None:
    try:
        payload = await frames.receive()
        return None if payload is None or is_kafkas(payload) else RequestEnvelope.unpack(payload)
    except (CodecError, FrameError) as error:
        raise _no_login(error) from None


def _no_login(error: Exception) -> AuthenticationFailed:
    return AuthenticationFailed(f"it does not send a login ({error})")


async def _answer(
    server: SaslServer, exchange: SaslExchange | None, request: RequestEnvelope
) -> tuple[SaslExchange, Message]:
    """Return the exchange and the answer to a request. Raises ApiError, whose cause is what the log is told."""
    try:
        if request.api_key == _HANDSHAKE and exchange is None:
            wanted = decode(SaslHandshakeRequest, request.body)
            return server.start(wanted.mechanism), SaslHandshakeResponse(server.mechanisms)
        if request.api_key != _AUTHENTICATE or exchange is None:
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, _NEEDED)
        message = await exchange.respond(decode(SaslAuthenticateRequest, request.body).message)
        return exchange, SaslAuthenticateResponse(message, exchange.user is not None)
    except AuthenticationFailed as error:
        is_mechanism = exchange is None
        code = ErrorCode.UNSUPPORTED_SASL_MECHANISM if is_mechanism else ErrorCode.SASL_AUTHENTICATION_FAILED
        raise ApiError(code, str(error) if is_mechanism else _REFUSED) from error


async def _refuse(frames: FrameStream, request: RequestEnvelope, refusal: ApiError) -> None:
    """Tell a client why it is sent away."""
    body = encode(refusal.message)
    await frames.send(frame(ResponseEnvelope(request.correlation_id, refusal.code, body).pack()))
    await trio.sleep(REFUSAL_SECONDS)
