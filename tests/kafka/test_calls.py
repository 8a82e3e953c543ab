"""What Kafka's nodes are asked in each version, and what their answers say in our terms."""

from __future__ import annotations

from typing import Any, Final

import pytest

from transport.errors import ApiError, ErrorCode
from transport.kafka import changing, messages as kafka, reading
from transport.kafka.calls import Call
from transport.kafka.codec import decode, encode
from transport.kafka.messages.alter_partition_reassignments_response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from transport.kafka.messages.create_topics_response import CreatableTopicResult
from transport.kafka.messages.delete_topics_response import DeletableTopicResult
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.messages.describe_log_dirs_response import DescribeLogDirsResult
from transport.kafka.messages.describe_quorum_response import Listener, Node, PartitionData, TopicData
from transport.kafka.messages.elect_leaders_response import PartitionResult, ReplicaElectionResult
from transport.kafka.messages.incremental_alter_configs_response import AlterConfigsResourceResponse
from transport.kafka.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from transport.kafka.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from transport.kafka.schema import Message
from transport.kafka.volume import ToldLogDir, Volume
from transport.messages import (
    UNKNOWN,
    AlterableConfig,
    AlterConfigsResource,
    BrokerEndpoint,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    LogDir,
    MetadataResponse,
    NewPartitions,
    NewTopic,
    PartitionError,
    PartitionState,
    ReassignablePartition,
    ResourceConfigs,
    ResourceError,
    TopicError,
)
from transport.metadata import ReplicaAssignment, TopicPartition

TP = TopicPartition("orders", 0)
ORDERS = ConfigResource(ConfigResourceType.TOPIC, "orders")
SETTINGS = AlterConfigsResource(
    ORDERS, (AlterableConfig("a", ConfigOperation.SET, "1"), AlterableConfig("b", ConfigOperation.DELETE))
)

CALLS: dict[str, tuple[Call[Any], int, int]] = {
    "metadata of all topics": (reading.metadata(None), 4, 13),
    "a page of all partitions": (reading.page(None, None), 0, 0),
    "a page of a topic": (reading.page(["orders"], ("orders", 2)), 0, 0),
    "metadata of a topic": (reading.metadata(["orders"]), 4, 13),
    "all reassignments": (reading.reassignments(None, 1), 0, 0),
    "reassignments": (reading.reassignments([TP], 1), 0, 0),
    "quorum": (reading.quorum(), 0, 2),
    "configs": (reading.configs([ORDERS]), 0, 4),
    "named configs": (reading.configs([ORDERS], ["a"]), 0, 4),
    "log dirs": (reading.log_dirs([TP]), 0, 5),
    "all log dirs": (reading.log_dirs(None), 0, 5),
    "create by counts": (changing.create_topics([NewTopic("orders", 3, 2)], 1, validate_only=True), 1, 7),
    "create by replicas": (
        changing.create_topics([NewTopic("orders", 1, 1, ((1, 2),), (("a", "1"),))], 1, validate_only=False),
        0,
        7,
    ),
    "more partitions": (changing.create_partitions([NewPartitions("orders", 3)], 1, validate_only=False), 0, 3),
    "placed partitions": (changing.create_partitions([NewPartitions("o", 3, ((1,),))], 1, validate_only=True), 0, 3),
    "delete": (changing.delete_topics(["orders"], 1), 0, 6),
    "move and cancel": (
        changing.reassign([ReassignablePartition("o", 0, (1,)), ReassignablePartition("o", 1, None)], 1),
        0,
        1,
    ),
    "elect": (changing.elect(ElectionType.PREFERRED, [TP], 1), 0, 2),
    "elect all uncleanly": (changing.elect(ElectionType.UNCLEAN, None, 1), 1, 2),
    "alter": (changing.alter_configs([SETTINGS]), 0, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_request_can_be_written_in_every_version(name: str) -> None:
    call, first, last = CALLS[name]
    assert last == call.request.versions.last
    for version in range(first, last + 1):
        written = call.write(version)
        assert decode(call.request, version, encode(written, version)) == written


def read(call: Call[Any], answer: Message) -> Any:
    """Return what an answer says, after its way over the wire."""
    version = call.response.versions.last
    return call.read(decode(call.response, version, encode(answer, version)))


def test_metadata_become_brokers_and_partitions() -> None:
    partition = MetadataResponsePartition(0, 4, 2, 7, (2, 3), (2,), (3,))
    answer = kafka.MetadataResponse(
        brokers=(MetadataResponseBroker(3, "three", 93), MetadataResponseBroker(2, "two", 92, "r2")),
        controller_id=3,
        topics=(
            MetadataResponseTopic(0, "orders", "AAAAAAAAAAAAAAAAAAAAAQ", partitions=(partition,)),
            MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "gone"),
            MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "secret"),
        ),
    )
    state = PartitionState(
        "orders", "AAAAAAAAAAAAAAAAAAAAAQ", 4, UNKNOWN, 2, 7, (2,), UNKNOWN, (2, 3), offline_replicas=(3,)
    )
    brokers = BrokerEndpoint(2, "two", 92, "r2"), BrokerEndpoint(3, "three", 93)
    refused = TopicError("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED, "our principal needs Describe on topic secret")
    assert read(reading.metadata(None), answer) == MetadataResponse(brokers[1], UNKNOWN, brokers, (state,), (refused,))


def test_metadata_that_are_refused_as_a_whole_are_no_empty_cluster() -> None:
    """As of version 13: a broker that takes the client for a lost one answers without brokers (KIP-1102)."""
    for call in (reading.metadata(None), reading.cluster_id()):
        with pytest.raises(ApiError, match="Kafka's error 129"):
            read(call, kafka.MetadataResponse(error_code=129))


def test_reassignments_have_what_they_add_and_remove() -> None:
    move = OngoingPartitionReassignment(0, (3, 1, 2), (3,), (2,))
    answer = kafka.ListPartitionReassignmentsResponse(topics=(OngoingTopicReassignment("orders", (move,)),))
    assert read(reading.reassignments(None, 1), answer) == {TP: ReplicaAssignment((3, 1, 2), (3,), (2,))}


def test_the_controller_of_kraft_is_the_leader_of_its_quorum() -> None:
    data = TopicData("__cluster_metadata", (PartitionData(0, 0, "", 3000, 8),))
    nodes = Node(1), Node(3000, (Listener("CONTROLLER", "there", 93),))
    told = kafka.DescribeQuorumResponse(topics=(data,), nodes=nodes)
    assert read(reading.quorum(), told) == (BrokerEndpoint(3000, "there", 93), 8)
    assert reading.quorum().read(kafka.DescribeQuorumResponse(topics=(data,))) == (BrokerEndpoint(3000, "", -1), 8)


def test_settings_have_their_sources_and_secrets_no_value() -> None:
    configs = (
        DescribeConfigsResourceResult("b", None, config_source=5),
        DescribeConfigsResourceResult("a", "1", config_source=1),
        DescribeConfigsResourceResult("c", None, config_source=2, is_sensitive=True),
    )
    answer = kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(0, None, 2, "orders", configs),))
    entries = (
        ConfigEntry("a", "1", "DYNAMIC_TOPIC_CONFIG"),
        ConfigEntry("b", "", "DEFAULT_CONFIG"),
        ConfigEntry("c", "(hidden)", "DYNAMIC_BROKER_CONFIG"),
    )
    assert read(reading.configs([ORDERS]), answer) == (ResourceConfigs(ORDERS, entries),)


def test_a_log_directory_has_its_volume() -> None:
    results = DescribeLogDirsResult(0, "/a", (), 100, 40), DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, "/b")
    assert read(reading.log_dirs(None), kafka.DescribeLogDirsResponse(results=results)) == (
        ToldLogDir(LogDir("/a", ErrorCode.NONE, (), 100, 40), Volume(100, 40)),
        ToldLogDir(LogDir("/b", ErrorCode.KAFKA_STORAGE_ERROR, ())),
    )


def test_topics_have_outcomes() -> None:
    call = changing.create_topics([NewTopic("orders", 3, 2)], 1, validate_only=False)
    refused = CreatableTopicResult("b", "", ErrorCode.TOPIC_ALREADY_EXISTS, "there")
    strange = CreatableTopicResult("c", "", 44, None)
    answer = kafka.CreateTopicsResponse(topics=(CreatableTopicResult("a"), refused, strange))
    assert read(call, answer) == (
        TopicError("a"),
        TopicError("b", ErrorCode.TOPIC_ALREADY_EXISTS, "there"),
        TopicError("c", ErrorCode.UNKNOWN_SERVER_ERROR, "Kafka's error 44"),
    )
    elsewhere = kafka.CreateTopicsResponse(topics=(CreatableTopicResult("a", "", ErrorCode.NOT_CONTROLLER),))
    with pytest.raises(ApiError, match="NOT_CONTROLLER"):
        read(call, elsewhere)


def test_partitions_have_outcomes() -> None:
    rows = ReassignablePartitionResponse(0, 0, None), ReassignablePartitionResponse(1, 85, "none")
    answer = kafka.AlterPartitionReassignmentsResponse(responses=(ReassignableTopicResponse("orders", rows),))
    assert read(changing.reassign([], 1), answer) == (
        PartitionError("orders", 0),
        PartitionError("orders", 1, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "none"),
    )
    with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED: our principal needs Alter on the cluster"):
        read(changing.reassign([], 1), kafka.AlterPartitionReassignmentsResponse(error_code=31, error_message="no"))


def test_an_election_of_all_leaves_out_those_that_needed_none() -> None:
    rows = PartitionResult(0, 0, None), PartitionResult(1, ErrorCode.ELECTION_NOT_NEEDED, "no")
    answer = kafka.ElectLeadersResponse(replica_election_results=(ReplicaElectionResult("orders", rows),))
    elected = PartitionError("orders", 0)
    assert read(changing.elect(ElectionType.PREFERRED, None, 1), answer) == (elected,)
    not_needed = PartitionError("orders", 1, ErrorCode.ELECTION_NOT_NEEDED, "no")
    assert read(changing.elect(ElectionType.PREFERRED, [TP], 1), answer) == (elected, not_needed)


def test_settings_have_outcomes() -> None:
    row = AlterConfigsResourceResponse(ErrorCode.INVALID_CONFIG, "bad", 2, "orders")
    answer = kafka.IncrementalAlterConfigsResponse(responses=(row,))
    assert read(changing.alter_configs([SETTINGS]), answer) == (ResourceError(ORDERS, ErrorCode.INVALID_CONFIG, "bad"),)


DUMP: Final = "Request Request(processor=1, connectionId=127.0.0.1:9092-127.0.0.1:1-0, session=...) is not authorized."
"""The text of a broker in ZooKeeper mode that denies a request."""

ON_CLUSTER: Final = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
ON_TOPIC: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize(
    ("call", "answer", "operation"),
    [
        (
            changing.reassign([], 1),
            kafka.AlterPartitionReassignmentsResponse(error_code=ON_CLUSTER, error_message=DUMP),
            "Alter",
        ),
        (changing.elect(ElectionType.PREFERRED, None, 1), kafka.ElectLeadersResponse(error_code=ON_CLUSTER), "Alter"),
        (
            reading.reassignments(None, 1),
            kafka.ListPartitionReassignmentsResponse(error_code=ON_CLUSTER, error_message=DUMP),
            "Describe",
        ),
        (reading.quorum(), kafka.DescribeQuorumResponse(error_code=ON_CLUSTER, error_message=DUMP), "Describe"),
    ],
)
def test_a_denied_request_names_its_operation_instead_of_the_text_of_the_broker(
    call: Call[Any], answer: Message, operation: str
) -> None:
    with pytest.raises(ApiError) as raised:
        read(call, answer)
    assert raised.value.message == f"our principal needs {operation} on the cluster"


def test_denied_items_name_their_operations_and_resources() -> None:
    deleted = kafka.DeleteTopicsResponse(responses=(DeletableTopicResult("orders", error_code=ON_TOPIC),))
    created = kafka.CreateTopicsResponse(topics=(CreatableTopicResult("orders", "", ON_TOPIC, DUMP),))
    settings = kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(ON_CLUSTER, DUMP, 4, "1"),))
    altered = kafka.IncrementalAlterConfigsResponse(
        responses=(AlterConfigsResourceResponse(ON_TOPIC, DUMP, 2, "orders"),)
    )
    outcomes = [
        *read(changing.delete_topics(["orders"], 1), deleted),
        *read(changing.create_topics([], 1, validate_only=False), created),
        *read(reading.configs([]), settings),
        *read(changing.alter_configs([]), altered),
    ]
    assert [one.message for one in outcomes] == [
        "our principal needs Delete on topic orders",
        "our principal needs Create on topic orders",
        "our principal needs DescribeConfigs on the cluster",
        "our principal needs AlterConfigs on topic orders",
    ]
