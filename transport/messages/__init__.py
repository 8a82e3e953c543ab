"""The requests and responses of the wire, as frozen values apart from their encoding.

Names, fields and api keys are Kafka's where Kafka has the message; keys from 1000 on are our own. A message is encoded
as the array of its fields in the order given here (`transport.wire.codec`). A field may therefore only be appended,
with a default and together with a new version in `APIS`; readers ignore fields that they do not know. The error of a
whole request travels in the response's envelope, the error of one item beside the item.
"""

from __future__ import annotations

from transport.messages.admin import (
    AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse,
    FailedReplica as FailedReplica,
    ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse as ListPartitionReassignmentsResponse,
    MetadataRequest as MetadataRequest,
    MetadataResponse as MetadataResponse,
    OngoingReassignment as OngoingReassignment,
    ReassignablePartition as ReassignablePartition,
    WaitingReplica as WaitingReplica,
)
from transport.messages.apis import (
    APIS as APIS,
    Api as Api,
    ApiVersion as ApiVersion,
    ApiVersionsRequest as ApiVersionsRequest,
    ApiVersionsResponse as ApiVersionsResponse,
)
from transport.messages.cluster import (
    DescribeClusterRequest as DescribeClusterRequest,
    DescribeClusterResponse as DescribeClusterResponse,
    DescribedBroker as DescribedBroker,
)
from transport.messages.common import (
    BrokerEndpoint as BrokerEndpoint,
    Message as Message,
    PartitionError as PartitionError,
    PartitionState as PartitionState,
    Request as Request,
)
from transport.messages.configs import (
    AlterableConfig as AlterableConfig,
    AlterConfigsResource as AlterConfigsResource,
    ConfigEntry as ConfigEntry,
    ConfigOperation as ConfigOperation,
    ConfigResource as ConfigResource,
    ConfigResourceType as ConfigResourceType,
    DescribeConfigsRequest as DescribeConfigsRequest,
    DescribeConfigsResponse as DescribeConfigsResponse,
    IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse as IncrementalAlterConfigsResponse,
    ResourceConfigs as ResourceConfigs,
    ResourceError as ResourceError,
)
from transport.messages.control import (
    NOT_FAILURES as NOT_FAILURES,
    AlterPartitionItem as AlterPartitionItem,
    AlterPartitionRequest as AlterPartitionRequest,
    AlterPartitionResponse as AlterPartitionResponse,
    AlterPartitionResult as AlterPartitionResult,
    LeaderAndIsrPartition as LeaderAndIsrPartition,
    LeaderAndIsrRequest as LeaderAndIsrRequest,
    LeaderAndIsrResponse as LeaderAndIsrResponse,
    StopReplicaPartition as StopReplicaPartition,
    StopReplicaRequest as StopReplicaRequest,
    StopReplicaResponse as StopReplicaResponse,
    UpdateMetadataRequest as UpdateMetadataRequest,
    UpdateMetadataResponse as UpdateMetadataResponse,
)
from transport.messages.data import (
    MAX_WAIT_MS as MAX_WAIT_MS,
    FetchPartition as FetchPartition,
    FetchRequest as FetchRequest,
    FetchResponse as FetchResponse,
    FetchResult as FetchResult,
    ProduceRequest as ProduceRequest,
    ProduceResponse as ProduceResponse,
    Record as Record,
)
from transport.messages.elections import (
    ControlledShutdownRequest as ControlledShutdownRequest,
    ControlledShutdownResponse as ControlledShutdownResponse,
    ElectionType as ElectionType,
    ElectLeadersRequest as ElectLeadersRequest,
    ElectLeadersResponse as ElectLeadersResponse,
    LeaderOrder as LeaderOrder,
)
from transport.messages.log_dirs import (
    DescribeLogDirsRequest as DescribeLogDirsRequest,
    DescribeLogDirsResponse as DescribeLogDirsResponse,
    LogDir as LogDir,
    LogDirReplica as LogDirReplica,
)
from transport.messages.producer_ids import (
    AllocateProducerIdsRequest as AllocateProducerIdsRequest,
    AllocateProducerIdsResponse as AllocateProducerIdsResponse,
)
from transport.messages.reassignments import (
    UNKNOWN as UNKNOWN,
    UNTHROTTLED as UNTHROTTLED,
    DescribeReassignmentsRequest as DescribeReassignmentsRequest,
    DescribeReassignmentsResponse as DescribeReassignmentsResponse,
    ListReassignmentsRequest as ListReassignmentsRequest,
    ListReassignmentsResponse as ListReassignmentsResponse,
    ReassignmentDescription as ReassignmentDescription,
    ReassignmentKey as ReassignmentKey,
    ReplicaProgress as ReplicaProgress,
)
from transport.messages.rollouts import (
    MOVES_OF_A_PART as MOVES_OF_A_PART,
    UNLIMITED as UNLIMITED,
    ChangeRolloutRequest as ChangeRolloutRequest,
    ChangeRolloutResponse as ChangeRolloutResponse,
    DescribeRolloutMovesRequest as DescribeRolloutMovesRequest,
    DescribeRolloutMovesResponse as DescribeRolloutMovesResponse,
    DescribeRolloutsRequest as DescribeRolloutsRequest,
    DescribeRolloutsResponse as DescribeRolloutsResponse,
    RolloutChanges as RolloutChanges,
    RolloutDescription as RolloutDescription,
    RolloutMove as RolloutMove,
    RolloutMoveState as RolloutMoveState,
    RolloutOrder as RolloutOrder,
    RolloutSettings as RolloutSettings,
    StartRolloutRequest as StartRolloutRequest,
    StartRolloutResponse as StartRolloutResponse,
    UploadRolloutRequest as UploadRolloutRequest,
    UploadRolloutResponse as UploadRolloutResponse,
)
from transport.messages.topics import (
    CreatePartitionsRequest as CreatePartitionsRequest,
    CreatePartitionsResponse as CreatePartitionsResponse,
    CreateTopicsRequest as CreateTopicsRequest,
    CreateTopicsResponse as CreateTopicsResponse,
    DeleteTopicsRequest as DeleteTopicsRequest,
    DeleteTopicsResponse as DeleteTopicsResponse,
    NewPartitions as NewPartitions,
    NewTopic as NewTopic,
    TopicError as TopicError,
)
from transport.messages.trace import (
    CommitTraceRequest as CommitTraceRequest,
    CommitTraceResponse as CommitTraceResponse,
    TracedCommit as TracedCommit,
)
