"""The listeners of a store's session."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from transport.store.protocol import StoreEvent

Listener = Callable[[StoreEvent], None]


class Listeners:
    """Calls whoever subscribed, in the order of subscription. A listener may neither block nor raise."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._keys = count()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add `listener`; return what removes it."""
        key = next(self._keys)
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def notify(self, event: StoreEvent) -> None:
        """Call every listener that has not been removed by the time of its turn."""
        for key in list(self._listeners):
            listener = self._listeners.get(key)
            if listener is not None:
                listener(event)
