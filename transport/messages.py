"""The requests and responses of the wire, as frozen values apart from their encoding.

Names, fields and api keys are Kafka's where Kafka has the message; keys from 1000 on are our own. A message
is encoded as the array of its fields in the order given here (`transport.wire.codec`), so a field may only be
appended, with a default, together with a new version in `APIS`; a reader ignores what it does not know.
Errors of a whole request travel in the response's envelope, errors of one item beside the item.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from attrs import frozen

from transport.errors import ErrorCode

R_co = TypeVar("R_co", covariant=True)

MAX_WAIT_MS: Final = 500


class Request(Generic[R_co]):
    """A message that is answered by one response of type R_co."""

    __slots__ = ()


# --- what more than one message carries -------------------------------------------------------------------------


class PackedOnce:
    """A message that many others carry: its encoding is kept in it, apart from its fields, equality and copies."""

    __slots__ = ("packed",)

    packed: bytes


@frozen
class PartitionState(PackedOnce):
    """All that a broker is told about one partition. Packed once, whatever the number of brokers told.

    `leader` is -1 for none and -2 while the topic is being deleted. `partition_epoch` is the version of the
    partition's state znode; `isr` may briefly exceed `replicas` at the end of a reassignment (KAFKA-9672).
    """

    topic: str
    topic_id: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    offline_replicas: tuple[int, ...] = ()


@frozen
class BrokerEndpoint:
    """Where a broker or a controller listens."""

    id: int
    host: str
    port: int
    rack: str | None = None


@frozen
class PartitionError:
    """The outcome for one partition of a request that named several."""

    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


# --- version negotiation ----------------------------------------------------------------------------------------


@frozen
class ApiVersion:
    """The versions of one api that a server speaks."""

    api_key: int
    min_version: int
    max_version: int


@frozen
class ApiVersionsResponse:
    """Every api that the server speaks."""

    apis: tuple[ApiVersion, ...]


@frozen
class ApiVersionsRequest(Request[ApiVersionsResponse]):
    """The first request on every connection."""


# --- controller to broker ---------------------------------------------------------------------------------------


@frozen
class LeaderAndIsrPartition:
    """A partition that the broker holds. `is_new` lets it create the log (KAFKA-10314)."""

    state: PartitionState
    is_new: bool


@frozen
class LeaderAndIsrResponse:
    """An outcome for each partition."""

    partitions: tuple[PartitionError, ...]


@frozen
class LeaderAndIsrRequest(Request[LeaderAndIsrResponse]):
    """Lead or follow these partitions. Fenced by the controller's, the broker's and each leader's epoch."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[LeaderAndIsrPartition, ...]


@frozen
class UpdateMetadataResponse:
    """The metadata was taken."""


@frozen
class UpdateMetadataRequest(Request[UpdateMetadataResponse]):
    """These partitions changed; `live_brokers`, unless it is None, is the complete list; `controller` listens there."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    controller: BrokerEndpoint
    live_brokers: tuple[BrokerEndpoint, ...] | None
    partitions: tuple[PartitionState, ...]


@frozen
class StopReplicaPartition:
    """Stop this replica, and with `delete` remove its data. `leader_epoch` -2 means the topic is being deleted."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    delete: bool


@frozen
class StopReplicaResponse:
    """An outcome for each partition; one that the broker does not hold counts as stopped."""

    partitions: tuple[PartitionError, ...]


@frozen
class StopReplicaRequest(Request[StopReplicaResponse]):
    """Stop following or leading these partitions."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[StopReplicaPartition, ...]


# --- broker to controller ---------------------------------------------------------------------------------------


@frozen
class AlterPartitionItem:
    """The ISR that a leader wants for one partition, against the epochs it knows (KIP-497)."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    new_isr: tuple[int, ...]
    partition_epoch: int
    leader_recovery_state: int = 0


@frozen
class AlterPartitionResult:
    """What the controller made of it: the state in force if `error` is NONE."""

    topic: str
    partition: int
    error: ErrorCode
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1
    leader_recovery_state: int = 0


@frozen
class AlterPartitionResponse:
    """A result for each partition."""

    partitions: tuple[AlterPartitionResult, ...]


@frozen
class AlterPartitionRequest(Request[AlterPartitionResponse]):
    """A leader asks the controller to change ISRs."""

    broker_id: int
    broker_epoch: int
    partitions: tuple[AlterPartitionItem, ...]


# --- data -------------------------------------------------------------------------------------------------------


@frozen
class Record:
    """A record as a log holds it: its leader's epoch when it was appended, and its bytes."""

    leader_epoch: int
    value: bytes


@frozen
class ProduceResponse:
    """The offset of the first record."""

    base_offset: int


@frozen
class ProduceRequest(Request[ProduceResponse]):
    """Append records. `acks` is -1 (all of the ISR) or 1 (the leader alone)."""

    topic: str
    partition: int
    acks: int
    timeout_ms: int
    values: tuple[bytes, ...]


@frozen
class FetchPartition:
    """Read one partition from `fetch_offset` on, up to `max_bytes` but at least one record.

    `current_leader_epoch` -1 skips the epoch check. A follower also gives the epoch of its last record, so that
    the leader can tell where their logs part (KIP-595).
    """

    topic: str
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


@frozen
class FetchResult:
    """Records of one partition.

    With `diverging_epoch` other than -1 there are none: the reader must truncate its log to where that epoch ends in
    it, and to `diverging_end_offset` at most.
    """

    topic: str
    partition: int
    error: ErrorCode
    high_watermark: int = -1
    records: tuple[Record, ...] = ()
    diverging_epoch: int = -1
    diverging_end_offset: int = -1


@frozen
class FetchResponse:
    """A result for each partition."""

    partitions: tuple[FetchResult, ...]


@frozen
class FetchRequest(Request[FetchResponse]):
    """Read partitions; `replica_id` is -1 for a consumer, who sees no further than the high watermark.

    An answer without records waits `max_wait_ms` for some.
    """

    replica_id: int
    max_wait_ms: int
    partitions: tuple[FetchPartition, ...]


@frozen
class MetadataResponse:
    """The cluster as the answering node knows it. `controller` is None while none is known."""

    controller: BrokerEndpoint | None
    controller_epoch: int
    brokers: tuple[BrokerEndpoint, ...]
    partitions: tuple[PartitionState, ...]


@frozen
class MetadataRequest(Request[MetadataResponse]):
    """Ask any broker or controller about the cluster; `topics` None means all, an unknown one is left out."""

    topics: tuple[str, ...] | None = None


# --- administration ---------------------------------------------------------------------------------------------


@frozen
class NewTopic:
    """A topic to create: `partitions` times `replication_factor`, or the `assignments` per partition if not empty."""

    name: str
    partitions: int
    replication_factor: int
    assignments: tuple[tuple[int, ...], ...] = ()


@frozen
class TopicError:
    """The outcome for one topic."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@frozen
class CreateTopicsResponse:
    """An outcome for each topic."""

    topics: tuple[TopicError, ...]


@frozen
class CreateTopicsRequest(Request[CreateTopicsResponse]):
    """Create topics."""

    topics: tuple[NewTopic, ...]


@frozen
class ReassignablePartition:
    """A partition and its new replicas, preferred leader first; None cancels its reassignment (KIP-455)."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


@frozen
class AlterPartitionReassignmentsResponse:
    """An outcome for each partition: NONE means begun, not done."""

    partitions: tuple[PartitionError, ...]


@frozen
class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    """Begin, override or cancel reassignments."""

    partitions: tuple[ReassignablePartition, ...]


@frozen
class OngoingReassignment:
    """A partition that is being reassigned."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]


@frozen
class ListPartitionReassignmentsResponse:
    """The reassignments under way; partitions that are not being reassigned are left out."""

    partitions: tuple[OngoingReassignment, ...]


@frozen
class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse]):
    """List the reassignments under way, of all partitions or of those named as (topic, partition) (KIP-455)."""

    partitions: tuple[tuple[str, int], ...] | None = None


# --- our own ----------------------------------------------------------------------------------------------------


@frozen
class TracedCommit:
    """One commit of the controller, or the state it loaded (`round` "loaded") when it took office.

    `zxid` is that of the multi; for a loaded state, that of the partition's last change. `partitions` are the
    partitions that the commit changed, as they are after it.
    """

    sequence: int
    controller_id: int
    controller_epoch: int
    event: str
    round: str
    zxid: int
    topic_versions: tuple[tuple[str, int], ...]
    partitions: tuple[PartitionState, ...]


@frozen
class CommitTraceResponse:
    """Commits from the one asked for on, oldest first; `next_sequence` is what to ask for next."""

    next_sequence: int
    commits: tuple[TracedCommit, ...]


@frozen
class CommitTraceRequest(Request[CommitTraceResponse]):
    """Ask a controller for its commits from `sequence` on; waits `max_wait_ms` for one.

    The trace is bounded: what was dropped is missing, and `TracedCommit.sequence` shows the gap.
    """

    sequence: int
    max_wait_ms: int


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
    Api(1, "Fetch", FetchRequest, FetchResponse),
    Api(3, "Metadata", MetadataRequest, MetadataResponse),
    Api(4, "LeaderAndIsr", LeaderAndIsrRequest, LeaderAndIsrResponse),
    Api(5, "StopReplica", StopReplicaRequest, StopReplicaResponse),
    Api(6, "UpdateMetadata", UpdateMetadataRequest, UpdateMetadataResponse),
    Api(18, "ApiVersions", ApiVersionsRequest, ApiVersionsResponse),
    Api(19, "CreateTopics", CreateTopicsRequest, CreateTopicsResponse),
    Api(45, "AlterPartitionReassignments", AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse),
    Api(46, "ListPartitionReassignments", ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse),
    Api(56, "AlterPartition", AlterPartitionRequest, AlterPartitionResponse),
    Api(1000, "CommitTrace", CommitTraceRequest, CommitTraceResponse),
)
