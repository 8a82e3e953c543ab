"""The other end of a stream: its address, and the name that it has proved."""

from __future__ import annotations

import trio
from attrs import frozen

from transport.passing_stream import PassingStream
from transport.security.principal import ANONYMOUS, Principal


@frozen
class Peer:
    """The other end of a stream. The address is "" if it has none."""

    address: str = ""
    principal: Principal = ANONYMOUS


class IdentifiedStream(PassingStream):
    """A stream whose other end has proved who it is."""

    def __init__(self, stream: trio.abc.Stream, peer: Peer) -> None:
        """Take over a stream."""
        super().__init__(stream)
        self.peer = peer


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
