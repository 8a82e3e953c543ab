"""Reads frames of Kafka's protocol in passing.

A request begins with the key of its api, and an answer with a number that stays below 65,536, as does its connection's
count of requests: so the first two bytes tell them apart.
"""

from __future__ import annotations

from typing import Any, Final

from simulator.kafka import orders
from simulator.kafka.orders import TopicIdOf
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.codec import decode, encode
from transport.kafka.header import (
    correlation_id_of,
    pack_response,
    read_api,
    response_correlation_id,
    unpack_request,
    unpack_response,
)
from transport.kafka.orders import leader_and_isr_answer
from transport.kafka.questions import NameOf, alter_partition, controlled_shutdown
from transport.messages import (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import NO_EPOCH
from transport.wire.errors import CodecError
from transport.wire.frames import frame

_LENGTH_BYTES: Final = 4
_TOPIC_IDS_SINCE: Final = 5
"""The version of LeaderAndIsr since which an answer names topics by id, as those of all simulated releases do."""

_READS: Final = (kafka.DescribeClusterRequest.api_key, kafka.MetadataRequest.api_key)

Order = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
Question = AlterPartitionRequest | ControlledShutdownRequest


def is_kafkas(chunk: bytes) -> bool:
    """Return whether a frame is one of Kafka's protocol; ours never begin with 0."""
    return len(chunk) > _LENGTH_BYTES + 1 and not chunk[_LENGTH_BYTES]


def is_request(chunk: bytes) -> bool:
    """Return whether a frame of Kafka's is a request; otherwise it is a response."""
    return chunk[_LENGTH_BYTES + 1] != 0


def correlation_id(chunk: bytes) -> int:
    """Return the correlation id of a request or a response."""
    payload = chunk[_LENGTH_BYTES:]
    return correlation_id_of(payload) if is_request(chunk) else response_correlation_id(payload)


def api_name(chunk: bytes) -> str | None:
    """Return the name of a request's api; None if we have no such api."""
    key, _ = read_api(chunk[_LENGTH_BYTES:])
    return KAFKA_APIS[key].name if key in KAFKA_APIS else None


def read_of(chunk: bytes) -> str | None:
    """Return the name of the api by which a client asks who is in the cluster; None for any other request."""
    key, _ = read_api(chunk[_LENGTH_BYTES:])
    return api_name(chunk) if key in _READS else None


def order(chunk: bytes, topic_id_of: TopicIdOf) -> Order | None:
    """Return a controller's order to a broker, as ours; None for any other frame."""
    message = _request(chunk)
    match message:
        case kafka.LeaderAndIsrRequest():
            return orders.leader_and_isr(message)
        case kafka.UpdateMetadataRequest():
            return orders.update_metadata(message)
        case kafka.StopReplicaRequest():
            return orders.stop_replica(message, topic_id_of)
    return None


def question(chunk: bytes, name_of: NameOf) -> Question | None:
    """Return a broker's request to its controller about leadership, as ours; None for any other frame."""
    message = _request(chunk)
    match message:
        case kafka.AlterPartitionRequest():
            return alter_partition(message, read_api(chunk[_LENGTH_BYTES:])[1], name_of)
        case kafka.ControlledShutdownRequest():
            return controlled_shutdown(message, NO_EPOCH)
    return None


def answer_to_leader_and_isr(request: LeaderAndIsrRequest, chunk: bytes) -> LeaderAndIsrResponse | None:
    """Return the outcomes in an answer to LeaderAndIsr; None if it is a refusal."""
    _, body = unpack_response(kafka.LeaderAndIsrResponse, _TOPIC_IDS_SINCE, chunk[_LENGTH_BYTES:])
    try:
        return leader_and_isr_answer(request, decode(kafka.LeaderAndIsrResponse, _TOPIC_IDS_SINCE, body))
    except ApiError:
        return None


def refusal(request: bytes, error: ErrorCode) -> bytes:
    """Return the answer to a request that refuses all of it."""
    key, version = read_api(request[_LENGTH_BYTES:])
    response: Any = KAFKA_APIS[key].response
    body = encode(response(error_code=error.value), version)
    return frame(pack_response(response, version, correlation_id(request), body))


def describe(chunk: bytes) -> str:
    """Return the contents of a frame."""
    number = correlation_id(chunk)
    if not is_request(chunk):
        return f"#{number} answer of Kafka's, {len(chunk)} bytes"
    key, version = read_api(chunk[_LENGTH_BYTES:])
    try:
        return f"#{number} {api_name(chunk) or key} v{version} {_request(chunk)}"
    except CodecError as error:
        return f"#{number} {api_name(chunk) or key} v{version}: {error}"


def _request(chunk: bytes) -> object:
    payload = chunk[_LENGTH_BYTES:]
    key, version = read_api(payload)
    api = KAFKA_APIS.get(key)
    if not is_request(chunk) or api is None or version not in api.request.versions:
        return None
    _, body = unpack_request(api.request, payload)
    return decode(api.request, version, body)
