"""Znodes that are read again only after they have changed: for who looks at the same ones again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from transport.store.protocol import MetadataStore, SessionChanged, StoreEvent, Znode


class WatchedZnodes:
    """Keeps what was read, and forgets it when its watch fires or the session's watches may be gone.

    It grows with the number of paths that are asked for.
    """

    def __init__(self, store: MetadataStore) -> None:
        """Read from `store`; nothing is kept before the block of `watching`."""
        self._store = store
        self._known: dict[str, Znode | None] = {}
        self._asked: set[str] = set()
        """What is being read and has not changed since."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Hear of changes for the length of a block."""
        unsubscribe = self._store.subscribe(self._on_store_event)
        try:
            yield
        finally:
            unsubscribe()

    async def read(self, paths: Sequence[str]) -> list[Znode | None]:
        """Return znodes as they are now, or were a moment ago; None for each that does not exist."""
        known = {path: self._known[path] for path in paths if path in self._known}
        unknown = [path for path in dict.fromkeys(paths) if path not in known]
        if unknown:
            self._asked.update(unknown)
            known.update(zip(unknown, await self._store.read(unknown, watch=True), strict=True))
        self._known.update((path, known[path]) for path in unknown if path in self._asked)
        self._asked.difference_update(unknown)
        return [known[path] for path in paths]

    def _on_store_event(self, event: StoreEvent) -> None:
        if isinstance(event, SessionChanged):
            self._known.clear()
            self._asked.clear()
        else:
            self._known.pop(event.path, None)
            self._asked.discard(event.path)
