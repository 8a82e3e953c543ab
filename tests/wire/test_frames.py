"""Frames, without I/O."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st

from transport.wire import FrameDecoder, FrameError, FrameTooLarge, frame


def _take_all(decoder: FrameDecoder) -> list[bytes]:
    return list(iter(decoder.next_frame, None))


def test_a_frame_is_a_big_endian_length_and_a_payload() -> None:
    assert frame(b"abc") == b"\x00\x00\x00\x03abc"


def test_frames_fed_byte_by_byte_come_out_when_their_last_byte_is_there() -> None:
    decoder = FrameDecoder()
    seen = []
    for byte in frame(b"abc") + frame(b"d"):
        decoder.feed(bytes([byte]))
        seen.append(decoder.next_frame())
    assert seen == [None] * 6 + [b"abc"] + [None] * 4 + [b"d"]


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=8), st.lists(st.integers(1, 30), min_size=1))
def test_the_pieces_that_a_stream_comes_in_make_no_difference(payloads: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(map(frame, payloads))
    decoder = FrameDecoder()
    received = []
    while stream:
        for size in sizes:
            decoder.feed(stream[:size])
            stream = stream[size:]
            received += _take_all(decoder)
    assert received == payloads


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    decoder = FrameDecoder(max_frame_bytes=3)
    decoder.feed(frame(b"abc"))
    assert _take_all(decoder) == [b"abc"]


def test_a_frame_over_the_limit_is_refused_by_its_header_alone() -> None:
    decoder = FrameDecoder(max_frame_bytes=3)
    decoder.feed(frame(b"abc") + struct.pack(">i", 4))
    assert decoder.next_frame() == b"abc"
    for _ in range(2):  # and the stream stays lost
        with pytest.raises(FrameTooLarge, match="4 bytes exceeds the limit of 3"):
            decoder.next_frame()


@pytest.mark.parametrize("length", [0, -1, -(2**31)])
def test_a_length_that_is_not_positive_is_refused(length: int) -> None:
    decoder = FrameDecoder()
    decoder.feed(struct.pack(">i", length))
    with pytest.raises(FrameError):
        decoder.next_frame()


def test_a_payload_over_the_limit_is_not_framed() -> None:
    with pytest.raises(FrameTooLarge):
        frame(b"abcd", max_frame_bytes=3)
