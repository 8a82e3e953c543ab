"""The envelopes of messages.

A request is `[api_key, api_version, correlation_id, client_id, body]`, a response `[correlation_id, error, body]`. The
body of a request is a message. The body of a response is a message if the error is 0, else a sentence for people.
Bodies are spliced in and cut out as bytes, so that they are encoded once, and decoded only when their class is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgpack
from msgspec import Meta, MsgspecError, Raw, Struct
from msgspec.msgpack import Decoder, Encoder

from transport.wire.errors import CodecError

MAX_CLIENT_ID_BYTES: Final = 249
_MAX_HEADER_BYTES: Final = 512
_REQUEST_TYPES: Final = (int, int, int, str)
_RESPONSE_TYPES: Final = (int, int)

_SMALL: Final = 16 * 1024
"""The most bytes of a payload that is scanned to its end, which takes less time than to stop at the body."""

_KAFKAS_API_VERSIONS: Final = b"\x00\x12"
"""The key of ApiVersions in the header of a request of Kafka's."""

_ShortText = Annotated[str, Meta(max_length=MAX_CLIENT_ID_BYTES // 4)]
_ENCODER: Final = Encoder()
_SMALL_REQUEST: Final = Decoder(tuple[int, int, int, _ShortText, Raw])
_SMALL_RESPONSE: Final = Decoder(tuple[int, int, Raw])


class RequestEnvelope(Struct, frozen=True):
    """A request with a packed body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    body: bytes

    def pack(self) -> bytes:
        """Return the payload of a frame."""
        header = self.api_key, self.api_version, self.correlation_id, self.client_id
        return _ENCODER.encode((*header, Raw(self.body)))

    @classmethod
    def unpack(cls, payload: bytes) -> RequestEnvelope:
        """Unpack the payload of a frame except its body. Raises CodecError."""
        return cls(*(_open_small(payload, _SMALL_REQUEST) or _open(payload, _REQUEST_TYPES)))


class ResponseEnvelope(Struct, frozen=True):
    """A response with a packed body."""

    correlation_id: int
    error: int
    body: bytes

    def pack(self) -> bytes:
        """Return the payload of a frame."""
        return _ENCODER.encode((self.correlation_id, self.error, Raw(self.body)))

    @classmethod
    def unpack(cls, payload: bytes) -> ResponseEnvelope:
        """Unpack the payload of a frame except its body. Raises CodecError."""
        return cls(*(_open_small(payload, _SMALL_RESPONSE) or _open(payload, _RESPONSE_TYPES)))


def is_kafkas(payload: bytes) -> bool:
    """Return whether a payload is Kafka's question for versions, which comes from a client that tries both protocols.

    Its first byte, 0, would be a number in ours.
    """
    return payload.startswith(_KAFKAS_API_VERSIONS)


def _open_small(payload: bytes, decoder: Decoder[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """Return the parts of a small envelope; None for one that is large, or that has to be looked at more closely."""
    if len(payload) > _SMALL:
        return None
    try:
        *header, body = decoder.decode(payload)
    except (MsgspecError, ValueError, RecursionError):
        return None
    return *header, bytes(body)


def _open(payload: bytes, types: Sequence[type[int | str]]) -> list[Any]:
    unpacker = msgpack.Unpacker(
        max_str_len=MAX_CLIENT_ID_BYTES, max_bin_len=0, max_array_len=0, max_map_len=0, max_ext_len=0
    )
    unpacker.feed(payload[:_MAX_HEADER_BYTES])
    try:
        parts = unpacker.read_array_header()
        header = [unpacker.unpack() for _ in types]
    except (msgpack.UnpackException, ValueError) as error:
        raise CodecError(f"not an envelope: {type(error).__name__} {error}") from None
    if parts != len(types) + 1 or tuple(map(type, header)) != tuple(types):
        raise CodecError("not an envelope: the number or the types of its parts differ")
    return [*header, payload[unpacker.tell() :]]
