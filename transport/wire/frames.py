"""Frames: a 4-byte big-endian signed length, followed by the payload. Without I/O."""

from __future__ import annotations

import struct
from typing import Final

from transport.wire.errors import FrameError, FrameTooLarge, UnexpectedTls

MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
"""The default of Kafka's socket.request.max.bytes."""

_TLS_ALERT: Final = 0x1503
"""The first two bytes of what a server with TLS answers to a frame."""

_LENGTH: Final = struct.Struct(">i")


def frame(payload: bytes, max_frame_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """Prefix a payload with its length. Raises FrameTooLarge before a reader would."""
    if len(payload) > max_frame_bytes:
        raise FrameTooLarge(f"a frame of {len(payload)} bytes exceeds the limit of {max_frame_bytes}")
    return _LENGTH.pack(len(payload)) + payload


class FrameDecoder:
    """Splits a byte stream, fed in pieces of any size, into the payloads of its frames."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()

    @property
    def buffered(self) -> int:
        """The number of bytes that were fed and not returned yet."""
        return len(self._buffer)

    def allow(self, max_frame_bytes: int) -> None:
        """Change the limit of the frames that follow."""
        self._max_frame_bytes = max_frame_bytes

    def feed(self, data: bytes | bytearray) -> None:
        """Add the next bytes of the stream. Take out all complete payloads before feeding more."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Return the next payload, or None if it is not complete yet.

        Raises FrameTooLarge or FrameError as soon as a header announces a length that is too large, zero or negative.
        The stream cannot be used after that: every later call raises the same error.
        """
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        self._check(length)
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        # A view would save one of two copies, and costs more than both for a frame of usual size.
        payload = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return payload

    def _check(self, length: int) -> None:
        if length >> 16 == _TLS_ALERT and length > self._max_frame_bytes:
            raise UnexpectedTls("the other end speaks TLS, and this end does not: check security.protocol")
        if length > self._max_frame_bytes:
            raise FrameTooLarge(f"a frame of {length} bytes exceeds the limit of {self._max_frame_bytes}")
        if length <= 0:
            raise FrameError(f"a frame of {length} bytes")
