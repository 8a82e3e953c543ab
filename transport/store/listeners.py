"""The listeners of a store's session."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from transport.store.protocol import StoreEvent

Listener = Callable[[StoreEvent], None]


class Listeners:
    """Calls listeners in the order of subscription. A listener must neither block nor raise."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._keys = count()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add `listener`. Return a function that removes it."""
        key = next(self._keys)
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def notify(self, event: StoreEvent) -> None:
        """Call every listener; one that is removed before its turn is not called."""
        for key in list(self._listeners):
            listener = self._listeners.get(key)
            if listener is not None:
                listener(event)
