"""The msgpack wire: frames, envelopes, the encoding of messages, and a client and a server over trio streams.

A frame is a 4-byte big-endian length and a payload. Every connection starts with ApiVersions.
"""

from __future__ import annotations

from transport.wire.client import (
    REQUEST_TIMEOUT_SECONDS as REQUEST_TIMEOUT_SECONDS,
    Connection as Connection,
    open_connection as open_connection,
)
from transport.wire.codec import decode as decode, encode as encode
from transport.wire.errors import (
    CodecError as CodecError,
    ConnectionBroken as ConnectionBroken,
    FrameError as FrameError,
    FrameTooLarge as FrameTooLarge,
    NoToken as NoToken,
    NotServed as NotServed,
    RequestTimedOut as RequestTimedOut,
    UnsupportedApi as UnsupportedApi,
    Untrusted as Untrusted,
    WireError as WireError,
)
from transport.wire.frames import MAX_FRAME_BYTES as MAX_FRAME_BYTES, FrameDecoder as FrameDecoder, frame as frame
from transport.wire.server import (
    Admit as Admit,
    Caller as Caller,
    Handler as Handler,
    Handlers as Handlers,
    serve as serve,
    serve_stream as serve_stream,
)
