"""The envelopes around messages."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given, strategies as st

from transport.wire import CodecError
from transport.wire.envelope import MAX_CLIENT_ID_BYTES, RequestEnvelope, ResponseEnvelope

NUMBERS = st.integers(-(2**31), 2**63)


@given(NUMBERS, NUMBERS, NUMBERS, st.text(max_size=MAX_CLIENT_ID_BYTES // 4))
def test_a_request_has_the_documented_form_and_keeps_its_body_packed(
    key: int, version: int, correlation: int, client: str
) -> None:
    body = msgpack.packb([1, "x" * 1000])
    envelope = RequestEnvelope(key, version, correlation, client, body)
    assert msgpack.unpackb(envelope.pack()) == [key, version, correlation, client, [1, "x" * 1000]]
    assert RequestEnvelope.unpack(envelope.pack()) == envelope


@given(NUMBERS, NUMBERS)
def test_a_response_has_the_documented_form_and_keeps_its_body_packed(correlation: int, error: int) -> None:
    envelope = ResponseEnvelope(correlation, error, msgpack.packb("no"))
    assert msgpack.unpackb(envelope.pack()) == [correlation, error, "no"]
    assert ResponseEnvelope.unpack(envelope.pack()) == envelope


@pytest.mark.parametrize("client", ["me", "m" * 63, "é" * 62, "m" * MAX_CLIENT_ID_BYTES])
@pytest.mark.parametrize("body", [b"\x90", b"", b"no msgpack \xc1", b"\x90" * 3, b"\x91" * 20_000, bytes(40_000)])
def test_a_body_of_any_size_is_kept_whatever_is_in_it(client: str, body: bytes) -> None:
    request = RequestEnvelope(3, 1, 2**40, client, body)
    assert RequestEnvelope.unpack(request.pack()) == request
    response = ResponseEnvelope(2**40, -1, body)
    assert ResponseEnvelope.unpack(response.pack()) == response


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xc1", id="no msgpack"),
        pytest.param(msgpack.packb({"api_key": 3}), id="no array"),
        pytest.param(msgpack.packb([3, 0, 1, "me"]), id="too short"),
        pytest.param(msgpack.packb([3, 0, 1, "me", [], 0]), id="too long"),
        pytest.param(msgpack.packb(["3", 0, 1, "me", []]), id="a str for an int"),
        pytest.param(msgpack.packb([True, 0, 1, "me", []]), id="a bool for an int"),
        pytest.param(msgpack.packb([3, 0, 1, b"me", []]), id="bytes for a str"),
        pytest.param(msgpack.packb([3, 0, 1, "m" * (MAX_CLIENT_ID_BYTES + 1), []]), id="a long client id"),
        pytest.param(b"\x95\x03\x00\x01\xa2\xff\xff\x90", id="a client id that is no UTF-8"),
        pytest.param(b"\x95" + b"\x91" * 100_000, id="nested"),
        pytest.param(b"\x95\xdd\xff\xff\xff\xff", id="a claim of four billion elements"),
        pytest.param(b"\x95\x03\x00", id="cut off"),
    ],
)
def test_what_is_no_request_envelope_is_refused(payload: bytes) -> None:
    with pytest.raises(CodecError):
        RequestEnvelope.unpack(payload)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_envelope_or_a_codec_error(payload: bytes) -> None:
    for envelope in (RequestEnvelope, ResponseEnvelope):
        try:
            envelope.unpack(payload)
        except CodecError:
            continue
