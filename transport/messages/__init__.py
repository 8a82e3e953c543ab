"""The requests and responses of the wire, as frozen values apart from their encoding.

Names, fields and api keys are Kafka's where Kafka has the message; keys from 1000 on are our own. A message
is encoded as the array of its fields in the order given here (`transport.wire.codec`), so a field may only be
appended, with a default, together with a new version in `APIS`; a reader ignores what it does not know.
Errors of a whole request travel in the response's envelope, errors of one item beside the item.
"""

from __future__ import annotations

from transport.messages.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
    OngoingReassignment,
    ReassignablePartition,
    TopicError,
)
from transport.messages.apis import APIS, Api, ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from transport.messages.common import BrokerEndpoint, PackedOnce, PartitionError, PartitionState, Request
from transport.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from transport.messages.data import (
    MAX_WAIT_MS,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ProduceRequest,
    ProduceResponse,
    Record,
)
from transport.messages.trace import CommitTraceRequest, CommitTraceResponse, TracedCommit

__all__ = [
    "APIS",
    "MAX_WAIT_MS",
    "AlterPartitionItem",
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AlterPartitionResult",
    "Api",
    "ApiVersion",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "BrokerEndpoint",
    "CommitTraceRequest",
    "CommitTraceResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchResult",
    "LeaderAndIsrPartition",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "NewTopic",
    "OngoingReassignment",
    "PackedOnce",
    "PartitionError",
    "PartitionState",
    "ProduceRequest",
    "ProduceResponse",
    "ReassignablePartition",
    "Record",
    "Request",
    "StopReplicaPartition",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "TopicError",
    "TracedCommit",
    "UpdateMetadataRequest",
    "UpdateMetadataResponse",
]
