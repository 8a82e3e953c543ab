"""The requests of Kafka's brokers mean what Klamm's brokers mean, in every version."""

from __future__ import annotations

import pytest

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.codec import decode, encode
from transport.kafka.messages.alter_partition_request import BrokerState, PartitionData, TopicData
from transport.kafka.questions import (
    allocate_producer_ids_answer,
    alter_partition,
    alter_partition_answer,
    controlled_shutdown,
    controlled_shutdown_answer,
)
from transport.messages import (
    AllocateProducerIdsResponse,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from transport.metadata import TopicPartition

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAg"
VERSIONS = range(4)


def name_of(topic_id: str) -> str | None:
    return {ID: "orders"}.get(topic_id)


def proposal(version: int, *, topic: str = "orders", topic_id: str = ID) -> kafka.AlterPartitionRequest:
    """Return a proposal as a broker encodes it in a version: read back from its bytes."""
    isr = (1, 2)
    epochs = tuple(BrokerState(broker_id) for broker_id in isr)
    members = {"new_isr_with_epochs": epochs} if version >= 3 else {"new_isr": isr}
    row = PartitionData(partition_index=4, leader_epoch=5, partition_epoch=6, **members)
    request = kafka.AlterPartitionRequest(1, 77, (TopicData(topic, topic_id, (row,)),))
    return decode(kafka.AlterPartitionRequest, version, encode(request, version))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_proposal_and_its_answer(version: int) -> None:
    request = proposal(version)
    topic_id = ID if version >= 2 else ""
    expected = AlterPartitionRequest(1, 77, (AlterPartitionItem("orders", topic_id, 4, 5, (1, 2), 6),))
    assert alter_partition(request, version, name_of) == expected
    granted = AlterPartitionResponse((AlterPartitionResult("orders", 4, ErrorCode.NONE, 1, 5, (1, 2), 7),))
    answer = alter_partition_answer(request, version, name_of, granted)
    [topic] = decode(kafka.AlterPartitionResponse, version, encode(answer, version)).topics
    assert (topic.topic_name, topic.topic_id) == (("", ID) if version >= 2 else ("orders", ""))
    [row] = topic.partitions
    assert (row.error_code, row.leader_id, row.leader_epoch, row.isr, row.partition_epoch) == (0, 1, 5, (1, 2), 7)


@pytest.mark.parametrize(
    ("version", "error", "told"),
    [
        (0, ErrorCode.INVALID_REQUEST, ErrorCode.OPERATION_NOT_ATTEMPTED),
        (1, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED),
        (2, ErrorCode.INVALID_REQUEST, ErrorCode.INELIGIBLE_REPLICA),
        (3, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INELIGIBLE_REPLICA),
        (3, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_a_refusal_does_not_freeze_the_leader(version: int, error: ErrorCode, told: ErrorCode) -> None:
    refused = AlterPartitionResponse((AlterPartitionResult("orders", 4, error),))
    [topic] = alter_partition_answer(proposal(version), version, name_of, refused).topics
    assert topic.partitions[0].error_code == told


@pytest.mark.parametrize("version", [2, 3])
def test_an_unknown_topic_id_is_answered_and_not_passed_on(version: int) -> None:
    request = proposal(version, topic_id=UNKNOWN_ID)
    assert alter_partition(request, version, name_of).partitions == ()
    [topic] = alter_partition_answer(request, version, name_of, AlterPartitionResponse(())).topics
    assert topic.topic_id == UNKNOWN_ID
    assert [row.error_code for row in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_an_error_of_the_whole_request_is_that_of_the_response() -> None:
    error = ApiError(ErrorCode.NOT_CONTROLLER)
    answer = alter_partition_answer(proposal(3), 3, name_of, error)
    assert (answer.error_code, answer.topics) == (ErrorCode.NOT_CONTROLLER, ())
    assert controlled_shutdown_answer(error).error_code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize("version", VERSIONS)
def test_a_controlled_shutdown(version: int) -> None:
    sent = kafka.ControlledShutdownRequest(3, 70)
    request = decode(kafka.ControlledShutdownRequest, version, encode(sent, version))
    # Versions 0 and 1 have no broker epoch.
    assert controlled_shutdown(request, 77) == ControlledShutdownRequest(3, 70 if version >= 2 else 77)
    answer = controlled_shutdown_answer(ControlledShutdownResponse((TopicPartition("orders", 1),)))
    [left] = decode(kafka.ControlledShutdownResponse, version, encode(answer, version)).remaining_partitions
    assert (left.topic_name, left.partition_index) == ("orders", 1)


def test_ids_for_producers() -> None:
    answer = allocate_producer_ids_answer(AllocateProducerIdsResponse(3_000, 1_000))
    assert (answer.error_code, answer.producer_id_start, answer.producer_id_len) == (0, 3_000, 1_000)
    refused = allocate_producer_ids_answer(ApiError(ErrorCode.STALE_BROKER_EPOCH))
    assert (refused.error_code, refused.producer_id_len) == (ErrorCode.STALE_BROKER_EPOCH, 0)
