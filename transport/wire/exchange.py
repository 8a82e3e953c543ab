"""Requests and answers over one stream, one at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Generic, Protocol, TypeVar

import trio

from transport.wire.errors import CodecError, ConnectionBroken, FrameError, RequestTimedOut
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import MAX_FRAME_BYTES, frame

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
R = TypeVar("R")


class Ask(Protocol[A_co]):
    """One request and its answer on a connection."""

    async def __call__(self, pack: Callable[[int], bytes], read: Callable[[A_co], R]) -> R:
        """Send the payload that `pack` returns for a correlation id, and return what `read` reads from the answer."""


class Exchange(Generic[A]):
    """The client's end of a stream. Callers queue up, and one request is in flight at a time.

    There is no background task, so nothing would read the answer to a call that is cancelled or times out: such a call
    closes the connection if its request was in flight.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        peer: str,
        unpack: Callable[[bytes], tuple[int, A]],
        *,
        max_answer_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        """Take over a stream; `unpack` returns the correlation id of an answer's payload, and the answer."""
        self._frames = FrameStream(stream, max_answer_bytes)
        self._peer = peer
        self._unpack = unpack
        self._correlation_ids = count()
        self._turn = trio.Lock()
        self._is_broken = False

    async def ask(
        self,
        pack: Callable[[int], bytes],
        read: Callable[[A], R],
        *,
        api: str,
        timeout: float,  # noqa: ASYNC109  it includes the wait for the caller's turn
    ) -> R:
        """Send the payload that `pack` returns for a correlation id, and return what `read` reads from the answer.

        Raises RequestTimedOut or ConnectionBroken if there is no answer, or none that can be read; FrameTooLarge.
        """
        return await self.converse(lambda ask: ask(pack, read), api=api, timeout=timeout)

    async def converse(
        self,
        talk: Callable[[Ask[A]], Awaitable[R]],
        *,
        api: str,
        timeout: float,  # noqa: ASYNC109  it includes the wait for the caller's turn
    ) -> R:
        """Return what `talk` returns. It may ask several times, and nobody else asks in between.

        Raises what `talk` raises, and RequestTimedOut, as `ask` does.
        """
        with trio.CancelScope(relative_deadline=timeout):
            async with self._turn:
                return await talk(self._ask)
        raise RequestTimedOut(f"{self._peer} did not answer {api} within {timeout:g} s")

    async def close(self) -> None:
        """Close the stream. A call in progress raises ConnectionBroken."""
        self._is_broken = True
        await self._frames.close()

    async def _ask(self, pack: Callable[[int], bytes], read: Callable[[A], R]) -> R:
        if self._is_broken:
            raise ConnectionBroken(f"the connection to {self._peer} is closed")
        number = next(self._correlation_ids)
        framed = frame(pack(number))
        self._is_broken = True  # until the answer is complete
        try:
            found = read(await self._send_and_receive(framed, number))
            self._is_broken = False
        except (trio.BrokenResourceError, trio.ClosedResourceError, CodecError, FrameError) as error:
            text = str(error) or type(error).__name__
            raise ConnectionBroken(f"the connection to {self._peer} broke: {text}") from error
        finally:
            if self._is_broken:
                await self._frames.close()
        return found

    async def _send_and_receive(self, framed: bytes, number: int) -> A:
        await self._frames.send(framed)
        payload = await self._frames.receive()
        if payload is None:
            raise ConnectionBroken(f"{self._peer} closed the connection")
        answered, answer = self._unpack(payload)
        if answered != number:
            raise ConnectionBroken(f"{self._peer} answered a request that is not the one under way")
        return answer
