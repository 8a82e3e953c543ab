"""A stream that passes everything on to another one."""

from __future__ import annotations

import trio


class PassingStream(trio.abc.Stream):
    """Passes everything on to a stream. Subclasses add to it, or do something else instead."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        """Take over a stream."""
        self._stream = stream

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes."""
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until bytes can be sent."""
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Receive bytes."""
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
