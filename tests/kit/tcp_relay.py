"""A TCP relay that fails as networks do: it cuts, stalls, half-opens, and accepts without ever answering."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import trio

HOST: Final = "127.0.0.1"
_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class Direction:
    """One direction through a relay, for all of its connections."""

    def __init__(self) -> None:
        self._flowing = trio.Event()
        self._flowing.set()
        self._held = trio.Event()

    def stall(self) -> None:
        """Hold back everything that arrives from now on, including the end of a connection."""
        if self._flowing.is_set():
            self._flowing = trio.Event()
            self._held = trio.Event()

    def resume(self) -> None:
        """Deliver what was held back, and everything that follows."""
        self._flowing.set()

    async def held(self) -> None:
        """Wait until something is held back."""
        await self._held.wait()

    async def pump(self, source: trio.SocketStream, sink: trio.SocketStream) -> None:
        """Forward bytes until either end is gone."""
        with suppress(*_GONE):
            async for part in source:
                if not self._flowing.is_set():
                    self._held.set()
                await self._flowing.wait()
                await sink.send_all(part)
        await self._flowing.wait()


class TcpRelay:
    """Relays connections to a server on this machine. Open one with `tcp_relay`."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.to_server = Direction()
        self.to_client = Direction()
        self.serves: float = math.inf
        """Number of further connections to serve; later ones are accepted, but never answered."""
        self._server_port = server_port
        self._connections: set[trio.CancelScope] = set()
        self._server_sides: set[trio.SocketStream] = set()

    @property
    def address(self) -> str:
        """The address for clients, as host:port."""
        return f"{HOST}:{self.port}"

    def stall(self) -> None:
        """Hold back everything in both directions."""
        self.to_server.stall()
        self.to_client.stall()

    def resume(self) -> None:
        """Deliver what was held back in both directions, and everything that follows."""
        self.to_server.resume()
        self.to_client.resume()

    def cut(self) -> None:
        """Close all connections on both sides, and drop what was held back; new connections are served."""
        for scope in self._connections:
            scope.cancel()
        self.resume()

    def half_open(self) -> None:
        """Close the server's side of all connections without notice to the client, as in a power failure."""
        self.stall()
        for stream in self._server_sides:
            stream.socket.close()

    async def relay(self, client: trio.SocketStream) -> None:
        """Serve one connection."""
        with trio.CancelScope() as scope:
            self._connections.add(scope)
            try:
                with suppress(OSError):
                    await self._relay(client)
            finally:
                self._connections.discard(scope)

    async def _relay(self, client: trio.SocketStream) -> None:
        self.serves -= 1
        if self.serves < 0:
            await trio.sleep_forever()
        server = await trio.open_tcp_stream(HOST, self._server_port)
        self._server_sides.add(server)
        try:
            async with server, trio.open_nursery() as nursery:
                nursery.start_soon(self._carry, self.to_server, client, server, nursery.cancel_scope)
                nursery.start_soon(self._carry, self.to_client, server, client, nursery.cancel_scope)
        finally:
            self._server_sides.discard(server)

    async def _carry(
        self, direction: Direction, source: trio.SocketStream, sink: trio.SocketStream, both: trio.CancelScope
    ) -> None:
        await direction.pump(source, sink)
        both.cancel()


@asynccontextmanager
async def tcp_relay(server_port: int) -> AsyncIterator[TcpRelay]:
    """Relay a free port of 127.0.0.1 to its `server_port`, until the block ends."""
    relay = TcpRelay(server_port)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, relay.relay, 0, host=HOST))
        relay.port = listeners[0].socket.getsockname()[1]
        yield relay
        nursery.cancel_scope.cancel()
