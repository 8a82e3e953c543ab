"""Reads frames in passing, without taking part in the conversation."""

from __future__ import annotations

from typing import Final, get_args

from simulator.kafka import frames as kafka
from simulator.kafka.orders import TopicIdOf
from transport.errors import ErrorCode
from transport.kafka.questions import NameOf
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeReassignmentsRequest,
    DescribeRolloutMovesRequest,
    DescribeRolloutsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    Request,
    StopReplicaRequest,
    UpdateMetadataRequest,
    UploadRolloutRequest,
)
from transport.metadata import TopicPartition
from transport.wire.apis import OURS
from transport.wire.codec import decode
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.errors import CodecError

_LENGTH_BYTES: Final = 4
_REQUEST_MARK: Final = 0x95
"""The first byte of a request's payload: msgpack's array of five."""

_FIRST_MARK: Final = 0x80
"""A byte below this is an integer by itself."""

_INTEGER_BYTES: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}

_TEXT_LIMIT: Final = 400

ControlRequest = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest

LeadershipRequest = (
    AlterPartitionReassignmentsRequest | AlterPartitionRequest | ControlledShutdownRequest | ElectLeadersRequest
)

SettingsRequest = CreateTopicsRequest | IncrementalAlterConfigsRequest

_ABOUT_LEADERSHIP: Final = frozenset({*get_args(ControlRequest), *get_args(LeadershipRequest)})

_DECODED: Final = _ABOUT_LEADERSHIP | {*get_args(SettingsRequest), UploadRolloutRequest}

_READS: Final = frozenset(
    {
        DescribeClusterRequest,
        DescribeConfigsRequest,
        DescribeReassignmentsRequest,
        DescribeRolloutMovesRequest,
        DescribeRolloutsRequest,
        ListPartitionReassignmentsRequest,
        ListReassignmentsRequest,
        MetadataRequest,
    }
)

APIS: Final = tuple(sorted(api.name for api in OURS.by_key.values() if api.request in _ABOUT_LEADERSHIP))
"""The names of the apis whose requests are about leadership."""


def is_request(chunk: bytes) -> bool:
    """Return whether a frame is a request; otherwise it is a response."""
    if kafka.is_kafkas(chunk):
        return kafka.is_request(chunk)
    return len(chunk) > _LENGTH_BYTES and chunk[_LENGTH_BYTES] == _REQUEST_MARK


def correlation_id(chunk: bytes) -> int:
    """Return the correlation id of a request or a response. Fast, because it runs for every frame."""
    if kafka.is_kafkas(chunk):
        return kafka.correlation_id(chunk)
    at = _LENGTH_BYTES + 1
    if chunk[_LENGTH_BYTES] == _REQUEST_MARK:
        _, at = _unsigned(chunk, at)
        _, at = _unsigned(chunk, at)
    return _unsigned(chunk, at)[0]


def _unsigned(chunk: bytes, at: int) -> tuple[int, int]:
    """Return the msgpack integer at an index, and the index after it."""
    first = chunk[at]
    if first < _FIRST_MARK:
        return first, at + 1
    end = at + 1 + _INTEGER_BYTES[first]
    return int.from_bytes(chunk[at + 1 : end]), end


def _no_id(_: TopicPartition) -> str:
    return ""


def _no_name(_: str) -> None:
    return None


def control_request(chunk: bytes, topic_id_of: TopicIdOf = _no_id) -> ControlRequest | None:
    """Return a controller's order to a broker; None for any other frame.

    `topic_id_of` returns the topic ids of the broker's logs, which StopReplica of Kafka's does not name.
    """
    if kafka.is_kafkas(chunk):
        return kafka.order(chunk, topic_id_of)
    request = _request(chunk)
    return request if isinstance(request, ControlRequest) else None


def leadership_request(chunk: bytes) -> LeadershipRequest | None:
    """Return a request to a controller for replicas, ISRs, elections or a shutdown; None for any other frame."""
    request = _request(chunk)
    return request if isinstance(request, LeadershipRequest) else None


def leader_and_isr_answer(request: LeaderAndIsrRequest, chunk: bytes) -> LeaderAndIsrResponse | None:
    """Return the contents of an answer to LeaderAndIsr; None if it is a refusal."""
    if kafka.is_kafkas(chunk):
        return kafka.answer_to_leader_and_isr(request, chunk)
    response = ResponseEnvelope.unpack(chunk[_LENGTH_BYTES:])
    return decode(LeaderAndIsrResponse, response.body) if response.error == ErrorCode.NONE else None


def request_to_controller(
    chunk: bytes, name_of: NameOf = _no_name
) -> LeadershipRequest | SettingsRequest | UploadRolloutRequest | None:
    """Return a request about leadership, settings or the moves of a plan to a controller; None for any other frame.

    `name_of` returns the names of topics, of which Kafka's brokers name only the ids.
    """
    if kafka.is_kafkas(chunk):
        return kafka.question(chunk, name_of)
    request = _request(chunk)
    return request if isinstance(request, LeadershipRequest | SettingsRequest | UploadRolloutRequest) else None


def read_of(chunk: bytes) -> str | None:
    """Return the name of the api by which a request only reads what a controller knows; None for any other request."""
    if kafka.is_kafkas(chunk):
        return kafka.read_of(chunk)
    api = OURS.by_key.get(RequestEnvelope.unpack(chunk[_LENGTH_BYTES:]).api_key)
    return api.name if api is not None and api.request in _READS else None


def is_success(chunk: bytes) -> bool:
    """Return whether a response answers its request; those of Kafka that refuse a whole request do not say so."""
    return kafka.is_kafkas(chunk) or ResponseEnvelope.unpack(chunk[_LENGTH_BYTES:]).error == ErrorCode.NONE


def is_about_leadership(chunk: bytes, api: str | None = None) -> bool:
    """Return whether a frame is an order of a controller or a request for ISRs, elections or a controlled shutdown.

    With `api`, whether it is a request of the api of this name among them.
    """
    name = api_name(chunk) if is_request(chunk) else None
    return name in APIS and api in (None, name)


def api_name(chunk: bytes) -> str | None:
    """Return the name of a request's api; None if it is not one of ours."""
    if kafka.is_kafkas(chunk):
        return kafka.api_name(chunk)
    api = OURS.by_key.get(RequestEnvelope.unpack(chunk[_LENGTH_BYTES:]).api_key)
    return None if api is None else api.name


def _request(chunk: bytes) -> Request[object] | None:
    """Return a request that concerns leadership or settings; None for any other frame, which is not decoded."""
    if not is_request(chunk):
        return None
    envelope = RequestEnvelope.unpack(chunk[_LENGTH_BYTES:])
    api = OURS.by_key.get(envelope.api_key)
    return decode(api.request, envelope.body) if api is not None and api.request in _DECODED else None


def describe_frame(chunk: bytes) -> str:
    """Return the contents of a frame, on one line of limited length."""
    try:
        return _describe(chunk)[:_TEXT_LIMIT]
    except CodecError as error:
        return f"{len(chunk)} bytes that are no frame: {error}"


def _describe(chunk: bytes) -> str:
    if kafka.is_kafkas(chunk):
        return kafka.describe(chunk)
    if is_request(chunk):
        request = RequestEnvelope.unpack(chunk[_LENGTH_BYTES:])
        api = OURS.by_key.get(request.api_key)
        if api is None:
            return f"#{request.correlation_id} request of api {request.api_key}, {len(chunk)} bytes"
        return f"#{request.correlation_id} {api.name} {decode(api.request, request.body)}"
    response = ResponseEnvelope.unpack(chunk[_LENGTH_BYTES:])
    error = "" if response.error == ErrorCode.NONE else f" {ErrorCode(response.error).name}"
    return f"#{response.correlation_id} answer{error}, {len(chunk)} bytes"
