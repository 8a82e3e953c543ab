"""The codec refuses what a version cannot express and what no message is, and skips what newer ends add."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from tests.kafka.random_messages import VERSIONS, name_of, random_entity
from transport.kafka.codec import decode, encode, packed
from transport.kafka.messages import (
    AlterPartitionRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)
from transport.kafka.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrTopicState
from transport.kafka.messages.stop_replica_response import StopReplicaPartitionError
from transport.kafka.messages.update_metadata_request import UpdateMetadataTopicState
from transport.kafka.schema import Message
from transport.wire.errors import CodecError

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
STATE = LeaderAndIsrPartitionState(partition_index=3, leader=1, isr=(1, 2), replicas=(1, 2, 3))


def test_a_field_that_a_version_lacks_is_refused_unless_it_is_its_default() -> None:
    encode(LeaderAndIsrRequest(is_kraft_controller=False), 6)
    with pytest.raises(CodecError, match="LeaderAndIsrRequest of version 6 has no is_kraft_controller"):
        encode(LeaderAndIsrRequest(is_kraft_controller=True), 6)


def test_an_ignorable_field_is_left_out_of_a_version_that_lacks_it() -> None:
    request = UpdateMetadataRequest(topic_states=(UpdateMetadataTopicState(topic_name="t", topic_id=TOPIC_ID),))
    assert decode(UpdateMetadataRequest, 6, encode(request, 6)).topic_states[0].topic_id == ""
    assert decode(UpdateMetadataRequest, 7, encode(request, 7)) == request


@pytest.mark.parametrize("version", [2, 4, 7])
def test_an_entity_that_was_packed_once_is_spliced_in(version: int) -> None:
    topic = LeaderAndIsrTopicState(topic_name="t", partition_states=(STATE,))
    once = packed(STATE, LeaderAndIsrRequest, version)
    spliced = LeaderAndIsrTopicState(topic_name="t", partition_states=(once,))  # type: ignore[arg-type]
    assert encode(LeaderAndIsrRequest(topic_states=(spliced,)), version) == encode(
        LeaderAndIsrRequest(topic_states=(topic,)), version
    )


def test_tagged_fields_that_are_unknown_here_are_skipped() -> None:
    body = encode(ApiVersionsRequest("klamm", "1"), 3)
    assert body.endswith(b"\0")
    newer = body[:-1] + b"\x02" + b"\x05\x03abc" + b"\x09\x00"
    assert decode(ApiVersionsRequest, 3, newer) == ApiVersionsRequest("klamm", "1")


def test_tagged_fields_that_are_unknown_here_are_skipped_in_each_of_many_outcomes() -> None:
    head, row = b"\0\0" + b"\x02" + bytes(16) + b"\x03", (7).to_bytes(4, "big") + (56).to_bytes(2, "big")
    tagged = b"\x01" + b"\x05\x02" + b"??"
    plain = decode(LeaderAndIsrResponse, 7, head + (row + b"\0") * 2 + b"\0\0")
    [topic] = plain.topics
    assert [(each.partition_index, each.error_code) for each in topic.partition_errors] == [(7, 56)] * 2
    for body in (head + row + tagged + row + b"\0" * 3, head + row + b"\0" + row + tagged + b"\0\0"):
        assert decode(LeaderAndIsrResponse, 7, body) == plain


def test_outcomes_of_one_topic_after_another_are_read_with_and_without_tagged_fields() -> None:
    rows = [
        StopReplicaPartitionError(name, number, 56) for name in ("orders", "orders-2", "orders") for number in (1, 2)
    ]
    body = encode(StopReplicaResponse(0, tuple(rows)), 4)
    last, tagged = b"orders" + (2).to_bytes(4, "big") + (56).to_bytes(2, "big"), b"\x01" + b"\x05\x02" + b"??"
    assert body.endswith(last + b"\0\0")
    for newer in (body, body[:-2] + tagged + b"\0", body.replace(last + b"\0", last + tagged, 1)):
        assert decode(StopReplicaResponse, 4, newer).partition_errors == tuple(rows)


@pytest.mark.parametrize("tags", [b"\x01\x05\x7fabc", b"\x02\x05\x00\x05\x00", b"\x01\x00\x03\x01\x00\x00", b"\x01"])
def test_tagged_fields_out_of_order_or_bounds_are_refused(tags: bytes) -> None:
    body = encode(ApiVersionsResponse(), 3)
    with pytest.raises(CodecError):
        decode(ApiVersionsResponse, 3, body[:-1] + tags)


@pytest.mark.parametrize(
    ("message", "version", "body", "fault"),
    [
        (ApiVersionsRequest, 0, b"\0", "has 1 bytes too many"),
        (ApiVersionsRequest, 3, b"\x80\x80\x80\x80\x80\x01", "varint of more than 32 bits"),
        (ApiVersionsRequest, 3, b"\xff\xff\xff\xff\x1f", "varint of more than 32 bits"),
        (ApiVersionsRequest, 3, b"\x80", "ends in the middle of a varint"),
        (ApiVersionsRequest, 3, b"\x00\x01\x00", "has no client_software_name, which may not be null"),
        (ApiVersionsRequest, 3, b"\x03\xff\xff\x01\x00", "not UTF-8"),
        (ApiVersionsRequest, 3, b"\x10ab", "claims a length of 15, with 2 bytes left"),
        (StopReplicaRequest, 0, b"\0" * 9 + b"\xff\xff\xff\xfe", "claims a length of -2"),
        (AlterPartitionRequest, 3, b"\0" * 12 + b"\x04" + b"\0" * 30, "claims an array of 3, with 30 bytes left"),
    ],
)
def test_a_body_that_is_no_message_is_refused(message: type[Message], version: int, body: bytes, fault: str) -> None:
    with pytest.raises(CodecError, match=fault):
        decode(message, version, body)


@pytest.mark.parametrize(("kind", "version"), VERSIONS, ids=name_of)
def test_damaged_bodies_end_in_an_error_or_a_message_and_take_little_memory(kind: type[Message], version: int) -> None:
    rng = random.Random(f"damage {kind.__name__} {version}")
    for _ in range(2):
        body = encode(random_entity(rng, kind, version), version)
        for end in range(len(body))[:: max(len(body) // 40, 1)]:
            with pytest.raises(CodecError):
                decode(kind, version, body[:end])
        for _ in range(40 if body else 0):
            damaged = bytearray(body)
            for _ in range(rng.randint(1, 4)):
                damaged[rng.randrange(len(body))] = rng.choice((0xFF, 0x7F, rng.randrange(256)))
            _decode_or_refuse(kind, version, bytes(damaged))


def _decode_or_refuse(kind: type[Message], version: int, body: bytes) -> None:
    tracemalloc.start()
    try:
        decode(kind, version, body)
    except CodecError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 100_000 + 100 * len(body)
