"""A connection that asks only whether its server speaks Kafka's protocol.

The question is ApiVersions in its first version, which all servers of Kafka's answer, before a login too. It is written
by hand: commands for clusters of ours ask it as well, and need none of the classes of Kafka's messages.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import trio

from transport.wire.errors import CodecError
from transport.wire.exchange import Exchange

_API_VERSIONS: Final = 18
_CLIENT_ID: Final = b"klamm"
_REQUEST: Final = Struct(f">hhih{len(_CLIENT_ID)}s")
_ANSWER: Final = Struct(">ih")
"""The correlation id and the error code. The versions follow."""


class KafkaProbe:
    """Takes over a stream; `peer` is the name of the other end in errors."""

    def __init__(self, stream: trio.abc.Stream, *, peer: str) -> None:
        self._exchange = Exchange(stream, peer, _unpack)

    async def negotiate(self, *, timeout: float) -> None:  # noqa: ASYNC109  as other connections do
        """Ask. Raises ConnectionBroken if the server does not answer as Kafka's do, RequestTimedOut."""
        await self._exchange.ask(_question, _check, api="ApiVersions", timeout=timeout)

    async def close(self) -> None:
        """Close the connection."""
        await self._exchange.close()


def _question(number: int) -> bytes:
    return _REQUEST.pack(_API_VERSIONS, 0, number, len(_CLIENT_ID), _CLIENT_ID)


def _unpack(payload: bytes) -> tuple[int, int]:
    """Return the correlation id and the error code of an answer."""
    if len(payload) < _ANSWER.size:
        raise CodecError("an answer ends in the middle of its header")
    number, error = _ANSWER.unpack_from(payload)
    return number, error


def _check(error: int) -> None:
    if error:
        raise CodecError(f"the versions are refused with error {error}")
