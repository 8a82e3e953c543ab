"""The listeners of a store's session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import count

from transport.store.protocol import StoreEvent, WatchFired, WatchKind

Listener = Callable[[StoreEvent], None]


class Listeners:
    """Calls listeners in the order of subscription. A listener must neither block nor raise."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._keys = count()
        self._held: list[tuple[Collection[str], list[WatchFired]]] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add `listener`. Return a function that removes it."""
        key = next(self._keys)
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    @contextmanager
    def holding(self, paths: Collection[str]) -> Iterator[list[WatchFired]]:
        """Hold back what concerns znodes, except their children. What the block leaves in the list is passed on."""
        held: list[WatchFired] = []
        self._held.append((paths, held))
        try:
            yield held
        finally:
            self._pass_on(held)

    def _pass_on(self, held: list[WatchFired]) -> None:
        self._held = [(paths, events) for paths, events in self._held if events is not held]
        for event in held:
            self.notify(event)

    def notify(self, event: StoreEvent) -> None:
        """Call every listener, unless the event is held back; one that is removed before its turn is not called."""
        if isinstance(event, WatchFired) and event.kind is not WatchKind.CHILDREN:
            for paths, held in self._held:
                if event.path in paths:
                    held.append(event)
                    return
        for key in list(self._listeners):
            listener = self._listeners.get(key)
            if listener is not None:
                listener(event)
