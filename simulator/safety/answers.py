"""Every request that arrives is answered at most once, and nothing is answered that was not asked."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from simulator.frames import correlation_id, is_request

_CONNECTIONS: Final = 10_000
"""How many connections with a request under way are remembered: those that broke meanwhile are never answered."""


@define
class Answers:
    """Knows the requests under way, by connection."""

    _asked: dict[int, dict[int, str]] = field(factory=dict, init=False)

    def delivered(self, source: str, destination: str, connection_id: int, chunk: bytes) -> str | None:
        """Take a frame as it arrives, and return what is wrong with it."""
        number = correlation_id(chunk)
        asked = self._asked.pop(connection_id, {})
        fault = None
        if is_request(chunk):
            if number in asked:
                fault = f"{source} sent {destination} two requests with number {number} on connection {connection_id}"
            asked[number] = source
        elif asked.pop(number, None) != destination:
            fault = f"{source} answered number {number} on connection {connection_id}, which {destination} does not ask"
        if asked:
            self._asked[connection_id] = asked  # the last now
        if len(self._asked) > _CONNECTIONS:
            del self._asked[next(iter(self._asked))]
        return fault
