"""The handlers, by the type of the event or request that they process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from controller.events import (
    AutoPreferredReplicaLeaderElection,
    BrokerChange,
    BrokerModifications,
    ConfigChange,
    ControllerEvent,
    IsrChangeNotification,
    LeaderAndIsrResponseReceived,
    LogDirEventNotification,
    MetadataFailed,
    MetadataResend,
    PartitionModifications,
    PartitionReassignmentIsrChange,
    PreferredReplicaElection,
    ReassignmentProgress,
    ReplicasDeleted,
    ReplicasNotDeleted,
    RequestEvent,
    StrayDeletion,
    TopicChange,
    TopicDeletion,
    ZkPartitionReassignment,
)
from controller.handlers import (
    alter_partition,
    brokers,
    cluster,
    config_changes,
    configs,
    controlled_shutdown,
    deletion,
    deletion_markers,
    isr_changes,
    leader_elections,
    leader_rebalance,
    log_dirs,
    metadata,
    reassignment_requests,
    reassignment_views,
    reassignments,
    strays,
    throttles,
    topic_requests,
    topics,
)
from controller.model.context import ControllerContext
from controller.model.placement import Start
from controller.model.rounds import Rounds, immediately
from controller.progress.tracker import moves_of
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeReassignmentsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    Request,
)
from transport.metadata import TopicPartition

MAX_START: Final = 1 << 16
"""The exclusive upper bound of random start positions for placement, far above any number of brokers."""


def new_ids(host: Host) -> Iterator[str]:
    """Yield an endless sequence of new topic ids."""
    while True:
        yield host.new_id()


def new_starts(host: Host) -> Iterator[Start]:
    """Yield an endless sequence of random starts for the placement of new topics."""
    while True:
        yield Start(host.rng.randrange(MAX_START), host.rng.randrange(MAX_START))


Handler = Callable[[ControllerContext, Any, Host], Rounds[object]]
"""Takes the context, an event or a request of its type, and the host (clock, ids, random numbers); returns rounds."""


def _look(rounds: Callable[[ControllerContext], Rounds[object]]) -> Handler:
    """Return the handler of an event that carries no data: the handler reads the store to find what changed."""
    return lambda context, _event, _host: rounds(context)


def _deleted(context: ControllerContext, event: ReplicasDeleted, _host: Host) -> Rounds[None]:
    yield from strays.deleted(context, event.deletions)
    yield from deletion.replicas_deleted(context, event.deletions)


def _not_deleted(context: ControllerContext, event: ReplicasNotDeleted, _host: Host) -> Rounds[None]:
    yield from strays.not_deleted(context, event.replicas)
    yield from deletion.replicas_not_deleted(context, event.replicas)


def _answered(context: ControllerContext, event: LeaderAndIsrResponseReceived, _host: Host) -> Rounds[None]:
    epochs = event.broker_epoch, event.controller_epoch
    return log_dirs.leader_and_isr_answered(context, event.broker_id, epochs, event.outcomes.take())


def _finish(context: ControllerContext, event: PartitionReassignmentIsrChange, _host: Host) -> Rounds[None]:
    return reassignments.finish(context, [tp for tp in event.partitions if reassignments.may_finish(context, tp)])


EVENTS: Final[Mapping[type[ControllerEvent], Handler]] = {
    # --- the cluster changed ---
    BrokerChange: _look(brokers.broker_change),
    BrokerModifications: lambda context, event, _host: brokers.broker_modifications(context, event.broker_id),
    TopicChange: lambda context, _event, host: topics.topic_change(context, new_ids(host)),
    PartitionModifications: lambda context, event, host: topics.partition_modifications(
        context, event.topic, new_ids(host)
    ),
    TopicDeletion: _look(deletion.topic_deletion),
    ConfigChange: lambda context, _event, host: config_changes.config_change(context, host.now_ms()),
    IsrChangeNotification: _look(isr_changes.isr_change_notification),
    LogDirEventNotification: _look(log_dirs.log_dir_event_notification),
    # --- requests written to the store ---
    PreferredReplicaElection: _look(leader_elections.requested_in_store),
    ZkPartitionReassignment: _look(reassignment_requests.requested_in_store),
    # --- timers and follow-ups ---
    AutoPreferredReplicaLeaderElection: _look(leader_rebalance.rebalance),
    PartitionReassignmentIsrChange: _finish,
    ReassignmentProgress: lambda context, _event, _host: immediately(moves_of(context)),
    StrayDeletion: _look(strays.pursue_all),
    # --- brokers answered ---
    LeaderAndIsrResponseReceived: _answered,
    MetadataFailed: _look(lambda _context: immediately(None)),  # the retry is scheduled by `alarms`
    MetadataResend: lambda context, event, _host: brokers.resend_metadata(context, event.broker_id, event.broker_epoch),
    ReplicasDeleted: _deleted,
    ReplicasNotDeleted: _not_deleted,
}
"""The events that only the active controller processes."""

REQUESTS: Final[Mapping[type[Request[Any]], Handler]] = {
    # --- requests of brokers ---
    AlterPartitionRequest: lambda context, request, _host: alter_partition.alter_partition(context, request),
    ControlledShutdownRequest: lambda context, request, _host: controlled_shutdown.controlled_shutdown(
        context, request.broker_id, request.broker_epoch
    ),
    # --- changes by administrators ---
    AlterPartitionReassignmentsRequest: lambda context, request, _host: reassignment_requests.requested_by_api(
        context, request.partitions
    ),
    CreatePartitionsRequest: lambda context, request, _host: topic_requests.create_partitions(context, request),
    CreateTopicsRequest: lambda context, request, host: topic_requests.create_topics(
        context, request, new_ids(host), new_starts(host)
    ),
    DeleteTopicsRequest: lambda context, request, _host: deletion_markers.delete_topics(context, request.names),
    ElectLeadersRequest: lambda context, request, _host: leader_elections.requested_by_api(context, request),
    IncrementalAlterConfigsRequest: lambda context, request, _host: config_changes.alter_configs(
        context, request.resources
    ),
    # --- read-only requests ---
    DescribeConfigsRequest: lambda context, request, _host: configs.describe_configs(context, request.resources),
    DescribeReassignmentsRequest: lambda context, request, _host: throttles.with_throttles(
        reassignment_views.describe_reassignments(context, request.reassignments)
    ),
    DescribeClusterRequest: lambda context, _request, _host: immediately(cluster.describe_cluster(context)),
    ListPartitionReassignmentsRequest: lambda context, request, _host: immediately(
        reassignment_requests.list_ongoing(context, _tps(request.partitions))
    ),
    ListReassignmentsRequest: lambda context, request, _host: immediately(
        reassignment_views.list_reassignments(context, _tps(request.partitions))
    ),
    MetadataRequest: lambda context, request, _host: immediately(metadata.describe_topics(context, request.topics)),
}
"""The requests that are answered through the event queue."""


def _tps(partitions: Sequence[tuple[str, int]] | None) -> list[TopicPartition] | None:
    return None if partitions is None else [TopicPartition(*item) for item in partitions]


def rounds_for(context: ControllerContext, event: ControllerEvent, host: Host) -> Rounds[object]:
    """Return the rounds of an event that only the active controller processes.

    Raises ApiError(UNSUPPORTED_VERSION) for a request that no controller answers.
    """
    if not isinstance(event, RequestEvent):
        return EVENTS[type(event)](context, event, host)
    handler = REQUESTS.get(type(event.request))
    if handler is None:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "no controller answers this api")
    return handler(context, event.request, host)


def follow_ups(context: ControllerContext, event: ControllerEvent) -> list[ControllerEvent]:
    """Return the events to queue after `event` has been processed."""
    match event:
        case RequestEvent(request=AlterPartitionRequest(partitions=items)):
            # A granted ISR may be the one that a move was waiting for.
            tps = tuple(item.tp for item in items)
            ready = tuple(tp for tp in tps if reassignments.may_finish(context, tp))
            return [PartitionReassignmentIsrChange(ready)] if ready else []
        case _:
            return []
