"""Networks whose servers do not see a connection at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import trio
from attrs import frozen

from transport.network import Network, StreamHandler

Intercept = Callable[[StreamHandler, trio.abc.Stream], Awaitable[None]]
"""Handles a connection in place of a server's handler, which it may call."""


@frozen
class InterceptingNetwork:
    """A network whose connections to servers are handled by `intercept`."""

    _network: Network
    _intercept: Intercept

    async def addresses(self, host: str) -> Sequence[str]:
        """Return the addresses of a host, as the other network finds them."""
        return await self._network.addresses(host)

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        """Connect as the network does."""
        return await self._network.connect(host, port, address)

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve as the network does."""
        await self._network.serve(partial(self._intercept, handler), host, port, task_status=task_status)
