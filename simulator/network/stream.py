"""The streams of a simulated network."""

from __future__ import annotations

from collections.abc import Callable

import trio

from simulator.network.pipe import Ending, Pipe


class SimulatedStream(trio.abc.Stream):
    """One end of a connection. One task may send and one may receive at a time."""

    def __init__(self, incoming: Pipe, outgoing: Pipe, on_close: Callable[[SimulatedStream], None]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._on_close = on_close
        self._is_closed = False
        self._is_cut = False
        self._is_sending = False
        self._is_receiving = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send one chunk: the whole chunk, or nothing if cancelled."""
        await self.wait_send_all_might_not_block()
        if data:
            self._outgoing.put(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until there is room for a chunk."""
        if self._is_sending:
            raise trio.BusyResourceError("another task is sending on this stream")
        self._is_sending = True
        try:
            await trio.lowlevel.checkpoint()
            self._require_peer()
            while self._outgoing.is_full:
                await self._outgoing.wait_for_room()
                self._require_peer()
        finally:
            self._is_sending = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next chunk, or the next part of one, when it is due. If cancelled, nothing is lost."""
        if max_bytes is not None and max_bytes < 1:
            raise ValueError("max_bytes must be >= 1")
        if self._is_receiving:
            raise trio.BusyResourceError("another task is receiving from this stream")
        self._is_receiving = True
        try:
            self._require_open()
            if self._incoming.is_due:
                await trio.lowlevel.checkpoint()
                self._require_open()
            while not self._incoming.is_due:
                await self._incoming.wait_until_due()
                self._require_open()
            return self._incoming.take(max_bytes)
        finally:
            self._is_receiving = False

    async def aclose(self) -> None:
        """Close: the peer reads everything sent before, and then the end.

        Does not raise Cancelled: most streams are closed by force, and trio would spend more on that than on a request.
        """
        self.close()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def close(self) -> None:
        """Close without a checkpoint."""
        if not self._is_closed:
            self._is_closed = True
            self._outgoing.end(Ending.CLOSED)
            self._leave()

    def cut(self) -> None:
        """Make the stream unusable, because its host died."""
        self._is_cut = True
        self._leave()

    def _leave(self) -> None:
        self._incoming.stop_receiving()
        self._outgoing.wake_sender()
        self._on_close(self)

    def _require_open(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this stream was closed")
        if self._is_cut:
            raise trio.BrokenResourceError("this host was cut off")

    def _require_peer(self) -> None:
        self._require_open()
        if self._incoming.has_ended:
            raise trio.BrokenResourceError("the peer is gone")
