"""Fixtures for tests of the wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import trio

from transport.network import Network, StreamHandler


class _NetworkOfOne:
    """A network with a single peer, at the other end of a stream."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream

    async def addresses(self, host: str) -> Sequence[str]:
        return [host]

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:  # noqa: ARG002
        del host, port
        await trio.lowlevel.checkpoint()
        return self._stream

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        raise NotImplementedError


@pytest.fixture
def network_to() -> Callable[[trio.abc.Stream], Network]:
    return _NetworkOfOne
