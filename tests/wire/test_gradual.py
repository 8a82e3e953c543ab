"""Requests with long lists: decoded in slices with the same result, and rejected when they are too large."""

from __future__ import annotations

import msgpack
import pytest
import trio
from hypothesis import given, strategies as st

from controller.node import dispatch
from tests.kit.examples import examples
from tests.wire.test_codec import values_of
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    APIS,
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectionType,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    NewTopic,
    ReassignablePartition,
    Request,
)
from transport.metadata import TopicPartition
from transport.wire import CodecError, decode, encode, gradual
from transport.wire.codec import is_list, layout
from transport.wire.gradual import MAX_ENTRY_BYTES, SLICE_BYTES, decode_request

LIMITED = [api.request for api in APIS if api.request.max_listed is not None]
MOVES = AlterPartitionReassignmentsRequest(tuple(ReassignablePartition("orders", n, (1, 2, 3)) for n in range(50_000)))


@pytest.fixture
def tiny_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode everything in slices of a few bytes."""
    monkeypatch.setattr(gradual, "SLICE_BYTES", 3)


def decoded(cls: type[Request[object]], body: bytes) -> object:
    return trio.run(decode_request, cls, body)


def test_who_lists_something_for_the_controller_has_a_limit() -> None:
    listing = [request for request in dispatch.REQUESTS if any(map(is_list, layout(request)))]
    assert listing
    assert [request for request in listing if request.max_listed is None] == []


def test_the_layout_of_a_message_is_found_out_once() -> None:
    assert layout(DeleteTopicsRequest) is layout(DeleteTopicsRequest)


@pytest.mark.usefixtures("tiny_slices")
@pytest.mark.parametrize("request_class", LIMITED)
@examples(15)
@given(data=st.data())
def test_every_request_is_what_it_is_when_decoded_at_once(
    request_class: type[Request[object]], data: st.DataObject
) -> None:
    request = data.draw(values_of(request_class))
    assert decoded(request_class, encode(request)) == request


@pytest.mark.usefixtures("tiny_slices")
@given(st.binary(max_size=200), st.integers(0, 3))
def test_any_bytes_are_what_they_are_when_decoded_at_once(body: bytes, fields: int) -> None:
    """A request, or none."""
    body = bytes([0x90 + fields]) + body
    for request_class in (ListPartitionReassignmentsRequest, CreateTopicsRequest, ElectLeadersRequest):
        try:
            expected: object = decode(request_class, body)
        except CodecError:
            with pytest.raises((CodecError, ApiError)):  # a list that claims too much is refused before it is read
                decoded(request_class, body)
        else:
            assert decoded(request_class, body) == expected


@pytest.mark.usefixtures("tiny_slices")
def test_an_older_and_a_newer_version_of_a_request_are_read() -> None:
    names = ["a", "b"]
    assert decoded(ElectLeadersRequest, msgpack.packb([1, [["t", 0]]])) == ElectLeadersRequest(
        ElectionType.UNCLEAN, (TopicPartition("t", 0),)
    )
    assert decoded(DeleteTopicsRequest, msgpack.packb([names, "newer", [1]])) == DeleteTopicsRequest(("a", "b"))


async def test_others_have_their_turns_while_a_large_request_is_decoded() -> None:
    body, turns = encode(MOVES), 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await trio.lowlevel.checkpoint()
        assert await decode_request(AlterPartitionReassignmentsRequest, body) == MOVES
        nursery.cancel_scope.cancel()
    assert turns >= len(body) // (2 * SLICE_BYTES) > 3


def nested_topics() -> CreateTopicsRequest:
    """Return topics with very many partitions without replicas: a byte on the wire is eight in memory."""
    return CreateTopicsRequest(tuple(NewTopic(f"t{n}", 0, 0, ((),) * 1_500_000) for n in range(2)))


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        (DeleteTopicsRequest(("t",) * 10_001), "names lists 10,001 entries, more than the limit of 10,000"),
        (DeleteTopicsRequest(("orders",) * 1_000_000), "names lists 1,000,000 entries, more than the limit of 10,000"),
        (DeleteTopicsRequest(("x" * (MAX_ENTRY_BYTES + SLICE_BYTES),)), "an entry has more than 2,097,152 bytes"),
        (nested_topics(), "its entries have more than 2,000,000 fields and entries together"),
    ],
    ids=["few bytes", "many bytes", "an entry", "nested"],
)
def test_what_is_too_large_is_refused_in_a_sentence_that_says_what_to_do(request_: Request[object], fault: str) -> None:
    with pytest.raises(ApiError, match=f"{fault}.*Split it into several requests") as refused:
        decoded(type(request_), encode(request_))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_as_much_as_is_allowed_is_decoded() -> None:
    request = DeleteTopicsRequest(tuple(f"{'t' * 240}-{number}" for number in range(10_000)))
    assert decoded(DeleteTopicsRequest, encode(request)) == request


# --- who asks ---------------------------------------------------------------------------------------------------


def test_who_asks_for_more_asks_several_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeleteTopicsRequest, "max_listed", 2)
    assert DeleteTopicsRequest(("a", "b")).parts() == [DeleteTopicsRequest(("a", "b"))]
    assert DeleteTopicsRequest(()).parts() == [DeleteTopicsRequest(())]
    parts = DeleteTopicsRequest(("a", "b", "c")).parts()
    assert parts == [DeleteTopicsRequest(("a", "b")), DeleteTopicsRequest(("c",))]


def test_all_lists_of_a_request_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ElectLeadersRequest, "max_listed", 2)
    tps = tuple(TopicPartition("t", number) for number in range(3))
    elections = ElectLeadersRequest(ElectionType.PREFERRED, tps, ())
    assert elections.parts() == [ElectLeadersRequest(ElectionType.PREFERRED, part) for part in (tps[:2], tps[2:])]
    everything = ElectLeadersRequest(ElectionType.UNCLEAN)
    assert everything.parts() == [everything]
