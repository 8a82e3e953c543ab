"""A metadata store whose requests are timed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

import trio
from attrs import frozen

from transport.store.acls import Acl
from transport.store.protocol import Committed, MetadataStore, Op, SessionState, StoreEvent, Znode


@frozen
class TimedStore:
    """Delegates to `store`, and calls `took` with the duration of each request in seconds, even if it fails."""

    store: MetadataStore
    took: Callable[[float], None]

    @property
    def session_id(self) -> int:
        """The id of the current session."""
        return self.store.session_id

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self.store.state

    def subscribe(self, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Call `listener` with every later event. Return a function that unsubscribes it."""
        return self.store.subscribe(listener)

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes."""
        with self._timed():
            return await self.store.read(paths, watch=watch)

    async def read_ahead(self, paths: Sequence[str]) -> None:
        """Begin to read znodes."""
        await self.store.read_ahead(paths)

    async def children(self, paths: Sequence[str], *, watch: bool = False) -> list[list[str] | None]:
        """List the children of many znodes."""
        with self._timed():
            return await self.store.children(paths, watch=watch)

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Apply all of `ops` or none."""
        with self._timed():
            return await self.store.multi(ops, known=known)

    async def acls(self, paths: Sequence[str]) -> list[Acl | None]:
        """Return the ACLs of znodes."""
        with self._timed():
            return await self.store.acls(paths)

    def protect(self, *, set_acl: bool) -> None:
        """Decide who may change new znodes."""
        self.store.protect(set_acl=set_acl)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = trio.current_time()
        try:
            yield
        finally:
            self.took(trio.current_time() - began)
