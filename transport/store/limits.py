"""The sizes that ZooKeeper's servers accept, and what follows from them for what we write. Pure."""

from __future__ import annotations

from typing import Final

from attrs import frozen

DEFAULT_MAX_BUFFER: Final = 0xFFFFF
"""The default of `jute.maxbuffer`: 1 MiB less one byte. A server closes the connection of a larger request."""

LEAST_MAX_BUFFER: Final = 10_000
"""Room for all that is written together about one partition."""

_REQUEST: Final = 1_000_000
_FENCE_BYTES: Final = 1_000
_BYTES_OF_A_PATH: Final = 1_000

_LEAST_ROOM: Final = 200
"""The least room for each percent of a small request that is left for something else."""


@frozen
class RequestLimits:
    """The limits that follow from the servers' `jute.maxbuffer`, in bytes."""

    max_buffer: int = DEFAULT_MAX_BUFFER
    operations: int = 500
    """The most operations in a request made of several groups."""

    def operations_in(self, requests: int) -> int:
        """Return the most operations that so many such requests have room for."""
        return requests * self.operations

    @property
    def request(self) -> int:
        """The largest request; the rest is for its envelope and for the chroot in each path."""
        return self.max_buffer * _REQUEST // DEFAULT_MAX_BUFFER

    @property
    def group(self) -> int:
        """The largest group of operations that are committed together, which leaves room for the fence."""
        return self.request - _FENCE_BYTES

    @property
    def chunk(self) -> int:
        """The largest request made of several groups."""
        return self._share(90)

    @property
    def found_topic(self) -> int:
        """The largest topic znode accepted from others: we could not rewrite a larger one, not even to end a move."""
        return self._share(95)

    @property
    def topic(self) -> int:
        """The largest topic znode that we write; the rest of a request is for what is written together with it."""
        return self._share(90)

    @property
    def new_topic(self) -> int:
        """The largest assignment of a new or growing topic, which leaves room for its moves."""
        return self._share(80)

    @property
    def paths(self) -> int:
        """The largest number of paths that one request reads or watches."""
        return max(self.request // _BYTES_OF_A_PATH, 1)

    @property
    def characters(self) -> int:
        """The largest number of characters of these paths, which fit in any encoding."""
        return self.request // 4

    @property
    def text(self) -> str:
        """The limit for messages."""
        size = "1 MB" if self.max_buffer == DEFAULT_MAX_BUFFER else f"{self.max_buffer} bytes (jute.maxbuffer)"
        return f"ZooKeeper's limit of {size}"

    def _share(self, percent: int) -> int:
        left = 100 - percent
        return self.request - max(self.request * left // 100, left * _LEAST_ROOM)


DEFAULT_LIMITS: Final = RequestLimits()
