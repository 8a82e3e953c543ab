"""The msgpack wire: frames, envelopes, the encoding of messages, and a client and a server over trio streams.

A frame is a 4-byte big-endian length and a payload. Every connection starts with ApiVersions.
"""

from __future__ import annotations

from transport.wire.client import REQUEST_TIMEOUT_SECONDS, Connection, open_connection
from transport.wire.codec import decode, encode
from transport.wire.errors import (
    CodecError,
    ConnectionBroken,
    FrameError,
    FrameTooLarge,
    NotServed,
    RequestTimedOut,
    UnsupportedApi,
    WireError,
)
from transport.wire.frames import MAX_FRAME_BYTES, FrameDecoder, frame
from transport.wire.server import Admit, Caller, Handler, Handlers, serve, serve_stream

__all__ = [
    "MAX_FRAME_BYTES",
    "REQUEST_TIMEOUT_SECONDS",
    "Admit",
    "Caller",
    "CodecError",
    "Connection",
    "ConnectionBroken",
    "FrameDecoder",
    "FrameError",
    "FrameTooLarge",
    "Handler",
    "Handlers",
    "NotServed",
    "RequestTimedOut",
    "UnsupportedApi",
    "WireError",
    "decode",
    "encode",
    "frame",
    "open_connection",
    "serve",
    "serve_stream",
]
