"""Check that every delivered request is answered at most once, and that every answer has a request."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from simulator.frames import correlation_id, is_request

_CONNECTIONS: Final = 10_000
"""Connections with pending requests to remember. The limit drops those that broke: they are never answered."""


@define
class Answers:
    """The pending requests of each connection."""

    _asked: dict[int, dict[int, str]] = field(factory=dict, init=False)

    def delivered(self, source: str, destination: str, connection_id: int, chunk: bytes) -> str | None:
        """Record a frame when it is delivered, and return its fault, or None."""
        number = correlation_id(chunk)
        asked = self._asked.pop(connection_id, {})
        fault = None
        if is_request(chunk):
            if number in asked:
                fault = f"{source} sent {destination} two requests with number {number} on connection {connection_id}"
            asked[number] = source
        elif asked.pop(number, None) != destination:
            fault = f"{source} answered number {number} on connection {connection_id}, which {destination} did not send"
        # A connection with a new frame moves to the end: the limit below drops the one silent for longest.
        if asked:
            self._asked[connection_id] = asked
        if len(self._asked) > _CONNECTIONS:
            del self._asked[next(iter(self._asked))]
        return fault
