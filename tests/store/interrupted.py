"""A ZooKeeper session that is interrupted at the worst moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from tests.store.events import PATIENCE
from transport.store.kazoo_session import KazooReply, KazooRequest, KazooSession
from transport.store.requests import ListMany, Multi, ReadMany, SetWatches
from transport.store.zookeeper import ZooKeeperStore, open_zookeeper, parse_hosts

T = TypeVar("T")


class Interrupted(KazooSession):
    """A session in which something happens between a read and what is sent after it to arm its watches.

    With `before`, it happens when the next request of that type is about to be sent.
    """

    interruption: Callable[[], Awaitable[object]] | None = None
    before: type[Multi | SetWatches] | None = None
    _has_read = False

    async def send(self, request: KazooRequest[T]) -> KazooReply[T]:
        reads = isinstance(request, ReadMany | ListMany)
        is_moment = self._has_read and not reads if self.before is None else isinstance(request, self.before)
        if self.interruption is not None and is_moment:
            interruption, self.interruption = self.interruption, None
            await interruption()
        self._has_read = reads
        return await super().send(request)


@asynccontextmanager
async def interrupted(address: str) -> AsyncIterator[tuple[Interrupted, ZooKeeperStore]]:
    """Open a store and the session under it."""
    servers, chroot = parse_hosts(address)
    session = Interrupted(servers, 18_000)
    async with open_zookeeper(address):
        await session.connect(PATIENCE)
        try:
            yield session, ZooKeeperStore(session, chroot)
        finally:
            await session.close()
