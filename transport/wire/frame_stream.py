"""Frames over a trio stream."""

from __future__ import annotations

from typing import Final

import trio

from transport.wire.frames import MAX_FRAME_BYTES, FrameDecoder

_RECEIVE_BYTES: Final = 64 * 1024
_MAX_AHEAD_BYTES: Final = 64 * 1024
"""The approximate number of bytes read ahead while a request is handled."""


class FrameStream:
    """Sends frames and receives their payloads. Trio's stream errors and `FrameError` propagate."""

    def __init__(self, stream: trio.abc.Stream, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._stream = stream
        self._decoder = FrameDecoder(max_frame_bytes)

    def allow(self, max_frame_bytes: int) -> None:
        """Change the limit of the frames that follow."""
        self._decoder.allow(max_frame_bytes)

    @property
    def has_more(self) -> bool:
        """Whether bytes have been received after the last payload."""
        return self._decoder.buffered > 0

    async def send(self, framed: bytes) -> None:
        """Send a payload that `frame` has framed."""
        await self._stream.send_all(framed)

    async def receive(self) -> bytes | None:
        """Return the next payload, or None if the peer ended the stream, even in the middle of a frame."""
        while (payload := self._decoder.next_frame()) is None:
            data = await self._stream.receive_some(_RECEIVE_BYTES)
            if not data:
                return None
            self._decoder.feed(data)
        return payload

    async def wait_ended(self) -> None:
        """Wait until the peer ends the stream, and keep up to `_MAX_AHEAD_BYTES` that it sends before.

        Must not be called while `receive` waits. Loses nothing when cancelled. Trio's stream errors propagate.
        """
        while self._decoder.buffered < _MAX_AHEAD_BYTES:
            data = await self._stream.receive_some(_RECEIVE_BYTES)
            if not data:
                return
            self._decoder.feed(data)
        # Without further reads the end of the stream goes unnoticed, but the buffer stays bounded.
        await trio.sleep_forever()

    async def close(self) -> None:
        """Close the stream at once, even when cancelled."""
        # Cancelled must not replace another exception; and the farewell of TLS would have to wait.
        with trio.move_on_after(0, shield=True):
            await self._stream.aclose()
