"""The other end of a stream: its address, and the name that it has proved."""

from __future__ import annotations

import trio
from attrs import frozen

from transport.security.principal import ANONYMOUS, Principal


@frozen
class Peer:
    """The other end of a stream. The address is "" if it has none."""

    address: str = ""
    principal: Principal = ANONYMOUS


class IdentifiedStream(trio.abc.Stream):
    """A stream whose other end has proved who it is."""

    def __init__(self, stream: trio.abc.Stream, peer: Peer) -> None:
        """Take over a stream."""
        self._stream = stream
        self.peer = peer

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


def peer_of(stream: trio.abc.Stream) -> Peer:
    """Return the other end of a stream, as far as it is known."""
    if isinstance(stream, IdentifiedStream):
        return stream.peer
    if not isinstance(stream, trio.SocketStream):
        return Peer()
    try:
        return Peer(str(stream.socket.getpeername()[0]))
    except OSError:
        return Peer()  # it has disconnected already
