"""A cache of znodes for repeated reads: a znode is read again only after it has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from transport.store.protocol import MetadataStore, SessionChanged, StoreEvent, Znode


class WatchedZnodes:
    """Caches znodes until their watches fire or the session's watches may be lost.

    Grows with the number of different paths that are read.
    """

    def __init__(self, store: MetadataStore) -> None:
        """Read from `store`. Use it inside the block of `watching`."""
        self._store = store
        self._known: dict[str, Znode | None] = {}
        self._asked: set[str] = set()
        """The paths that are being read and have not changed since."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Subscribe to changes for the length of a block."""
        unsubscribe = self._store.subscribe(self._on_store_event)
        try:
            yield
        finally:
            unsubscribe()

    async def read(self, paths: Sequence[str]) -> list[Znode | None]:
        """Return znodes in their latest known state; None for each that does not exist."""
        known = {path: self._known[path] for path in paths if path in self._known}
        unknown = [path for path in dict.fromkeys(paths) if path not in known]
        if unknown:
            self._asked.update(unknown)
            known.update(zip(unknown, await self._store.read(unknown, watch=True), strict=True))
        # A path that changed while it was read has left `_asked`: its result may be stale already.
        unchanged = [path for path in unknown if path in self._asked]
        self._known.update((path, known[path]) for path in unchanged)
        self._asked.difference_update(unknown)
        return [known[path] for path in paths]

    def _on_store_event(self, event: StoreEvent) -> None:
        if isinstance(event, SessionChanged):
            self._known.clear()
            self._asked.clear()
        else:
            self._known.pop(event.path, None)
            self._asked.discard(event.path)
