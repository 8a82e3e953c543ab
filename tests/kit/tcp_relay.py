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
    """One way through a relay, for all of its connections."""

    def __init__(self) -> None:
        self._flowing = trio.Event()
        self._flowing.set()
        self._held = trio.Event()

    def stall(self) -> None:
        """Hold what comes from now on, the end of a connection too."""
        if self._flowing.is_set():
            self._flowing = trio.Event()
            self._held = trio.Event()

    def resume(self) -> None:
        """Deliver what was held, and what comes."""
        self._flowing.set()

    async def held(self) -> None:
        """Wait until something is held."""
        await self._held.wait()

    async def pump(self, source: trio.SocketStream, sink: trio.SocketStream) -> None:
        """Carry bytes until either end is gone."""
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
        """How many more connections are served; those that come after them are accepted, and nothing more."""
        self._server_port = server_port
        self._connections: set[trio.CancelScope] = set()
        self._server_sides: set[trio.SocketStream] = set()

    @property
    def address(self) -> str:
        """What clients connect to, as host:port."""
        return f"{HOST}:{self.port}"

    def stall(self) -> None:
        """Hold what comes in both directions."""
        self.to_server.stall()
        self.to_client.stall()

    def resume(self) -> None:
        """Deliver what was held in both directions, and what comes."""
        self.to_server.resume()
        self.to_client.resume()

    def cut(self) -> None:
        """Close all connections, both sides, and drop what was held; new ones are served."""
        for scope in self._connections:
            scope.cancel()
        self.resume()

    def half_open(self) -> None:
        """Close the server's side of all connections without a word to the client, as if the server lost its power."""
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
    """Relay what comes to a free port of 127.0.0.1 to `server_port` of it, until the block ends."""
    relay = TcpRelay(server_port)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, relay.relay, 0, host=HOST))
        relay.port = listeners[0].socket.getsockname()[1]
        yield relay
        nursery.cancel_scope.cancel()
