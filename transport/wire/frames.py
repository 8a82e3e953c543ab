"""Frames: a 4-byte big-endian signed length, then that many bytes of payload. Without I/O."""

from __future__ import annotations

import struct
from typing import Final

from transport.wire.errors import FrameError, FrameTooLarge

MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
"""As Kafka's socket.request.max.bytes."""

_LENGTH: Final = struct.Struct(">i")


def frame(payload: bytes, max_frame_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """Put the length in front of a payload; raises FrameTooLarge before a reader has to."""
    if len(payload) > max_frame_bytes:
        raise FrameTooLarge(f"a frame of {len(payload)} bytes exceeds the limit of {max_frame_bytes}")
    return _LENGTH.pack(len(payload)) + payload


class FrameDecoder:
    """Cuts a byte stream, fed in pieces of any size, into the payloads of its frames."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()

    @property
    def buffered(self) -> int:
        """The number of bytes fed that belong to no payload yet."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray) -> None:
        """Take the next bytes of the stream. Take out what is complete before feeding more."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Return the next payload, or None until more is fed.

        Raises FrameTooLarge or FrameError as soon as a header is there that announces too much, nothing or less than
        nothing. The stream is lost then: every later call raises the same.
        """
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        self._check(length)
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            payload = bytes(view[_LENGTH.size : end])
        del self._buffer[:end]
        return payload

    def _check(self, length: int) -> None:
        if length > self._max_frame_bytes:
            raise FrameTooLarge(f"a frame of {length} bytes exceeds the limit of {self._max_frame_bytes}")
        if length <= 0:
            raise FrameError(f"a frame of {length} bytes")
