"""The headers of requests and responses.

A request's header has api key, version, correlation id and client id; a response's only the correlation id. In flexible
versions both end with tagged fields, of which none is defined (KIP-482). There are two exceptions: the first version of
ControlledShutdown has no client id, and a response to ApiVersions never has tagged fields, because a client must be
able to read it whatever version the server answers in (KIP-511).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from attrs import frozen

from transport.kafka import primitives
from transport.kafka.messages import ApiVersionsResponse, ControlledShutdownRequest
from transport.kafka.schema import Message
from transport.wire.errors import CodecError

_FIXED: Final = Struct(">hhi")
_CORRELATION_ID: Final = Struct(">i")
_NO_TAGS: Final = b"\0"


@frozen
class RequestHeader:
    """The header of a request."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None = None


def pack_request(message: type[Message], header: RequestHeader, body: bytes) -> bytes:
    """Return the payload of a frame with a request of this kind."""
    packed = _FIXED.pack(header.api_key, header.version, header.correlation_id)
    if _has_client_id(header):
        packed += primitives.pack_string(header.client_id, is_compact=False)
    tags = _NO_TAGS if header.version in message.flexible else b""
    return packed + tags + body


def read_api(payload: bytes) -> tuple[int, int]:
    """Return api key and version of a request. Raises CodecError."""
    header, _ = _read_fixed(payload)
    return header.api_key, header.version


def unpack_request(message: type[Message], payload: bytes) -> tuple[RequestHeader, bytes]:
    """Return header and body of a request of this kind. Raises CodecError."""
    header, at = _read_fixed(payload)
    if _has_client_id(header):
        client_id, at = primitives.read_string(payload, at, is_compact=False)
        header = RequestHeader(header.api_key, header.version, header.correlation_id, client_id)
    return header, payload[_after_tags(message, header.version, payload, at) :]


def correlation_id_of(payload: bytes) -> int:
    """Return the correlation id of a request, whatever its api and version. Raises CodecError."""
    return _read_fixed(payload)[0].correlation_id


def pack_response(message: type[Message], version: int, correlation_id: int, body: bytes) -> bytes:
    """Return the payload of a frame with a response of this kind."""
    tags = _NO_TAGS if _has_response_tags(message, version) else b""
    return _CORRELATION_ID.pack(correlation_id) + tags + body


def unpack_response(message: type[Message], version: int, payload: bytes) -> tuple[int, bytes]:
    """Return correlation id and body of a response of this kind. Raises CodecError."""
    number, at = response_correlation_id(payload), _CORRELATION_ID.size
    if _has_response_tags(message, version):
        at = _after_tags(message, version, payload, at)
    return number, payload[at:]


def response_correlation_id(payload: bytes) -> int:
    """Return the correlation id of a response, whatever its api and version. Raises CodecError."""
    if len(payload) < _CORRELATION_ID.size:
        raise CodecError("an answer ends in the middle of its header")
    number: int
    (number,) = _CORRELATION_ID.unpack_from(payload)
    return number


def _read_fixed(payload: bytes) -> tuple[RequestHeader, int]:
    if len(payload) < _FIXED.size:
        raise CodecError("ends in the middle of a request's header")
    return RequestHeader(*_FIXED.unpack_from(payload)), _FIXED.size


def _has_client_id(header: RequestHeader) -> bool:
    return header.version > 0 or header.api_key != ControlledShutdownRequest.api_key


def _has_response_tags(message: type[Message], version: int) -> bool:
    return version in message.flexible and message is not ApiVersionsResponse


def _after_tags(message: type[Message], version: int, payload: bytes, at: int) -> int:
    """Return the index after the tagged fields of a header, which are skipped."""
    if version not in message.flexible:
        return at
    count, at = primitives.read_varint(payload, at)
    for _ in range(count):
        _, at = primitives.read_varint(payload, at)
        size, at = primitives.read_varint(payload, at)
        if size > len(payload) - at:
            raise CodecError(f"claims a tagged field of {size} bytes, with {len(payload) - at} left")
        at += size
    return at
