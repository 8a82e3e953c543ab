"""Which handler answers which event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

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
    Reload,
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
from transport.metadata import Stray, TopicPartition

REQUESTS: tuple[type[Request[object]], ...] = (
    AlterPartitionRequest,
    AlterPartitionReassignmentsRequest,
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
)
"""The apis that the event queue answers."""

_LOOKS: Final[dict[type[ControllerEvent], Callable[[ControllerContext], Rounds[object]]]] = {
    AutoPreferredReplicaLeaderElection: leader_rebalance.rebalance,
    BrokerChange: brokers.broker_change,
    IsrChangeNotification: isr_changes.isr_change_notification,
    LogDirEventNotification: log_dirs.log_dir_event_notification,
    PreferredReplicaElection: leader_elections.requested_in_store,
    StrayDeletion: strays.pursue_all,
    TopicDeletion: deletion.topic_deletion,
    ZkPartitionReassignment: reassignment_requests.requested_in_store,
}
"""The events that only say where to look."""

_Answer = LeaderAndIsrResponseReceived | MetadataFailed | MetadataResend | ReplicasDeleted | ReplicasNotDeleted
"""The events that follow from the answers of brokers."""

MOVES_PER_SECOND: Final = 2_000
"""How many moves are looked at per second, so that this takes a few percent of the event queue's time."""

RESEND_SECONDS: Final = 10.0
"""The time after which a broker is sent again what it failed at."""

CLOSED_SECONDS: Final = 60.0
"""The time after which topics that we may not read are looked at again."""

MAX_START: Final = 1 << 16
"""Where placement begins is drawn from so many places, far more than there are brokers."""


def new_ids(host: Host) -> Iterator[str]:
    """Yield new topic ids without end."""
    while True:
        yield host.new_id()


def new_starts(host: Host) -> Iterator[Start]:
    """Yield without end where the placement of new topics begins."""
    while True:
        yield Start(host.rng.randrange(MAX_START), host.rng.randrange(MAX_START))


def rounds_for(context: ControllerContext, event: ControllerEvent, host: Host) -> Rounds[object]:
    """Return the rounds of an event that only the active controller processes."""
    look = _LOOKS.get(type(event))
    if look is not None:
        return look(context)
    match event:
        case BrokerModifications(broker_id=broker_id):
            return brokers.broker_modifications(context, broker_id)
        case TopicChange():
            return topics.topic_change(context, new_ids(host))
        case PartitionModifications(topic=name):
            return topics.partition_modifications(context, name, new_ids(host))
        case ConfigChange():
            return config_changes.config_change(context, host.now_ms())
        case PartitionReassignmentIsrChange(partitions=tps):
            return reassignments.finish(context, [tp for tp in tps if reassignments.may_finish(context, tp)])
        case ReassignmentProgress():
            return immediately(moves_of(context))
        case _ if isinstance(event, _Answer):
            return _rounds_for_answer(context, event)
        case RequestEvent(request=request):
            return _rounds_for_request(context, request, host)
        case _:
            raise TypeError(f"no handler for {event.name}")


def _rounds_for_answer(context: ControllerContext, event: _Answer) -> Rounds[object]:
    match event:
        case LeaderAndIsrResponseReceived(broker_id=broker_id):
            epochs = event.broker_epoch, event.controller_epoch
            return log_dirs.leader_and_isr_answered(context, broker_id, epochs, event.outcomes.take())
        case MetadataFailed():
            return immediately(None)  # retried after a delay: see `alarms`
        case MetadataResend(broker_id=broker_id, broker_epoch=broker_epoch):
            return brokers.resend_metadata(context, broker_id, broker_epoch)
        case ReplicasDeleted(deletions=deletions):
            return _deleted(context, deletions)
        case ReplicasNotDeleted(replicas=replicas):
            return _not_deleted(context, replicas)


def _deleted(context: ControllerContext, deletions: Sequence[tuple[Stray, int]]) -> Rounds[None]:
    yield from strays.deleted(context, deletions)
    yield from deletion.replicas_deleted(context, deletions)


def _not_deleted(context: ControllerContext, replicas: Sequence[Stray]) -> Rounds[None]:
    yield from strays.not_deleted(context, replicas)
    yield from deletion.replicas_not_deleted(context, replicas)


def _rounds_for_request(context: ControllerContext, request: Request[object], host: Host) -> Rounds[object]:
    match request:
        case AlterPartitionRequest():
            return alter_partition.alter_partition(context, request)
        case AlterPartitionReassignmentsRequest(partitions=partitions):
            return reassignment_requests.requested_by_api(context, partitions)
        case ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch):
            return controlled_shutdown.controlled_shutdown(context, broker_id, broker_epoch)
        case CreatePartitionsRequest():
            return topic_requests.create_partitions(context, request)
        case CreateTopicsRequest():
            return topic_requests.create_topics(context, request, new_ids(host), new_starts(host))
        case DeleteTopicsRequest(names=names):
            return deletion_markers.delete_topics(context, names)
        case ElectLeadersRequest():
            return leader_elections.requested_by_api(context, request)
        case IncrementalAlterConfigsRequest(resources=altered):
            return config_changes.alter_configs(context, altered)
        case _:
            return _rounds_for_question(context, request)


def _rounds_for_question(context: ControllerContext, request: Request[object]) -> Rounds[object]:
    match request:
        case DescribeConfigsRequest(resources=resources):
            return configs.describe_configs(context, resources)
        case DescribeReassignmentsRequest(reassignments=keys):
            return throttles.with_throttles(reassignment_views.describe_reassignments(context, keys))
        case _:
            return immediately(_known(context, request))


def _known(context: ControllerContext, request: Request[object]) -> object:
    """Answer from the context alone."""
    match request:
        case DescribeClusterRequest():
            return cluster.describe_cluster(context)
        case ListPartitionReassignmentsRequest(partitions=partitions):
            return reassignment_requests.list_ongoing(context, _tps(partitions))
        case ListReassignmentsRequest(partitions=partitions):
            return reassignment_views.list_reassignments(context, _tps(partitions))
        case MetadataRequest(topics=names):
            return metadata.describe_cluster(context, names)
        case _:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "no controller answers this api")


def _tps(partitions: Sequence[tuple[str, int]] | None) -> list[TopicPartition] | None:
    return None if partitions is None else [TopicPartition(*item) for item in partitions]


def follow_ups(context: ControllerContext, event: ControllerEvent) -> list[ControllerEvent]:
    """Return the events that an event which was processed calls for."""
    match event:
        case RequestEvent(request=AlterPartitionRequest(partitions=items)):
            tps = tuple(TopicPartition(item.topic, item.partition) for item in items)
            ready = tuple(tp for tp in tps if reassignments.may_finish(context, tp))
            return [PartitionReassignmentIsrChange(ready)] if ready else []
        case _:
            return []


def alarms(context: ControllerContext, event: ControllerEvent) -> list[tuple[float, ControllerEvent]]:
    """Return the events that one which was processed calls for later, and after how many seconds."""
    return [*_later(context, event), *_look_at_moves(context)]


def _later(context: ControllerContext, event: ControllerEvent) -> list[tuple[float, ControllerEvent]]:
    match event:
        case TopicChange() | PartitionModifications() | Reload():
            return _look_at_closed_topics(context)
        case ReplicasNotDeleted(replicas=replicas):
            seconds = deletion.RETRY_SECONDS
            strays_left: list[ControllerEvent] = [StrayDeletion()] if any(r in context.strays for r in replicas) else []
            topics_left: list[ControllerEvent] = [TopicDeletion()] if context.deletions else []
            return [(seconds, again) for again in (*strays_left, *topics_left)]
        case TopicDeletion() | ReplicasDeleted() if not all(each.left for each in context.deletions.values()):
            # Its znodes could not be removed.
            return [(deletion.RETRY_SECONDS, TopicDeletion())]
        case MetadataFailed(broker_id=broker_id, broker_epoch=broker_epoch):
            return [(RESEND_SECONDS, MetadataResend(broker_id, broker_epoch))]
        case AutoPreferredReplicaLeaderElection(controller_epoch=epoch) if epoch == context.epoch:
            return [(context.config.leader_imbalance_check_interval_seconds, event)]
        case _:
            return []


def first_alarms(context: ControllerContext) -> list[tuple[float, ControllerEvent]]:
    """Return the events that a new controllership calls for later, and after how many seconds."""
    looks = [*_look_at_closed_topics(context), *_look_at_moves(context)]
    if not context.config.auto_leader_rebalance_enable:
        return looks
    rebalance = leader_rebalance.FIRST_SECONDS, AutoPreferredReplicaLeaderElection(context.epoch)
    return [rebalance, *looks]


def _look_at_closed_topics(context: ControllerContext) -> list[tuple[float, ControllerEvent]]:
    """Return when to try again to read topics that an ACL closes to us: no watch sees a changed ACL."""
    return [(CLOSED_SECONDS, TopicChange())] if context.closed_topics else []


def _look_at_moves(context: ControllerContext) -> list[tuple[float, ControllerEvent]]:
    """Return when to look what moves, while anything does: the more of it, the more rarely."""
    moves = len(context.reassigning)
    return [(max(1.0, moves / MOVES_PER_SECOND), ReassignmentProgress())] if moves else []
