"""The table of apis, and the messages that negotiate their versions."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from transport.messages.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    MetadataRequest,
    MetadataResponse,
)
from transport.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from transport.messages.common import Message, Request
from transport.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from transport.messages.control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from transport.messages.data import FetchRequest, FetchResponse, ProduceRequest, ProduceResponse
from transport.messages.elections import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from transport.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from transport.messages.producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from transport.messages.reassignments import (
    DescribeReassignmentsRequest,
    DescribeReassignmentsResponse,
    ListReassignmentsRequest,
    ListReassignmentsResponse,
)
from transport.messages.rollouts import (
    ChangeRolloutRequest,
    ChangeRolloutResponse,
    DescribeRolloutMovesRequest,
    DescribeRolloutMovesResponse,
    DescribeRolloutsRequest,
    DescribeRolloutsResponse,
    StartRolloutRequest,
    StartRolloutResponse,
    UploadRolloutRequest,
    UploadRolloutResponse,
)
from transport.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from transport.messages.trace import CommitTraceRequest, CommitTraceResponse


class ApiVersion(Message, frozen=True):
    """The versions of one api that a server supports."""

    api_key: int
    min_version: int
    max_version: int


class ApiVersionsResponse(Message, frozen=True):
    """Every api that the server supports."""

    apis: tuple[ApiVersion, ...]


class ApiVersionsRequest(Request[ApiVersionsResponse], frozen=True):
    """The first request on every connection."""


@frozen
class Api:
    """An entry of the table of apis."""

    key: int
    name: str
    request: type[Request[object]]
    response: type[object]
    min_version: int = 0
    max_version: int = 0


APIS: Final[tuple[Api, ...]] = (
    Api(0, "Produce", ProduceRequest, ProduceResponse),
    Api(1, "Fetch", FetchRequest, FetchResponse, max_version=1),
    Api(3, "Metadata", MetadataRequest, MetadataResponse, max_version=5),
    Api(4, "LeaderAndIsr", LeaderAndIsrRequest, LeaderAndIsrResponse, max_version=1),
    Api(5, "StopReplica", StopReplicaRequest, StopReplicaResponse, max_version=1),
    Api(6, "UpdateMetadata", UpdateMetadataRequest, UpdateMetadataResponse, max_version=2),
    Api(7, "ControlledShutdown", ControlledShutdownRequest, ControlledShutdownResponse),
    Api(18, "ApiVersions", ApiVersionsRequest, ApiVersionsResponse),
    Api(19, "CreateTopics", CreateTopicsRequest, CreateTopicsResponse, max_version=2),
    Api(20, "DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse),
    Api(32, "DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse),
    Api(35, "DescribeLogDirs", DescribeLogDirsRequest, DescribeLogDirsResponse, max_version=1),
    Api(37, "CreatePartitions", CreatePartitionsRequest, CreatePartitionsResponse, max_version=1),
    Api(43, "ElectLeaders", ElectLeadersRequest, ElectLeadersResponse, max_version=1),
    Api(
        44,
        "IncrementalAlterConfigs",
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
        max_version=1,
    ),
    Api(45, "AlterPartitionReassignments", AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse),
    Api(46, "ListPartitionReassignments", ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse),
    Api(56, "AlterPartition", AlterPartitionRequest, AlterPartitionResponse),
    Api(60, "DescribeCluster", DescribeClusterRequest, DescribeClusterResponse),
    Api(67, "AllocateProducerIds", AllocateProducerIdsRequest, AllocateProducerIdsResponse),
    Api(1000, "CommitTrace", CommitTraceRequest, CommitTraceResponse, max_version=1),
    Api(1001, "ListReassignments", ListReassignmentsRequest, ListReassignmentsResponse),
    Api(1002, "DescribeReassignments", DescribeReassignmentsRequest, DescribeReassignmentsResponse),
    Api(1003, "UploadRollout", UploadRolloutRequest, UploadRolloutResponse),
    Api(1004, "StartRollout", StartRolloutRequest, StartRolloutResponse),
    Api(1005, "DescribeRollouts", DescribeRolloutsRequest, DescribeRolloutsResponse),
    Api(1006, "DescribeRolloutMoves", DescribeRolloutMovesRequest, DescribeRolloutMovesResponse),
    Api(1007, "ChangeRollout", ChangeRolloutRequest, ChangeRolloutResponse),
)
