"""A metadata store for tests that interfere with one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from attrs import define

from transport.store.acls import Acl
from transport.store.protocol import Committed, MetadataStore, Op, SessionState, StoreEvent, Znode


@define
class PassingStore:
    """Passes everything on to a session; subclasses do something before or instead."""

    store: MetadataStore

    @property
    def session_id(self) -> int:
        """The id of the session."""
        return self.store.session_id

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self.store.state

    def subscribe(self, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """See `MetadataStore.subscribe`."""
        return self.store.subscribe(listener)

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """See `MetadataStore.read`."""
        return await self.store.read(paths, watch=watch)

    async def read_ahead(self, paths: Sequence[str]) -> None:
        """See `MetadataStore.read_ahead`."""
        await self.store.read_ahead(paths)

    async def children(self, paths: Sequence[str], *, watch: bool = False) -> list[list[str] | None]:
        """See `MetadataStore.children`."""
        return await self.store.children(paths, watch=watch)

    async def acls(self, paths: Sequence[str]) -> list[Acl | None]:
        """See `MetadataStore.acls`."""
        return await self.store.acls(paths)

    def protect(self, *, set_acl: bool) -> None:
        """See `MetadataStore.protect`."""
        self.store.protect(set_acl=set_acl)

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """See `MetadataStore.multi`."""
        return await self.store.multi(ops, known=known)
