"""The handlers, by the type of the event or request that they process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import trio

from controller import events
from controller.gathered import CaughtUp
from controller.handlers import (
    alter_partition,
    brokers,
    config_changes,
    configs,
    controlled_shutdown,
    deletion,
    deletion_markers,
    failed_replicas,
    isr_changes,
    kafka_brokers,
    leader_elections,
    leader_epochs,
    leader_rebalance,
    log_dirs,
    metadata,
    producer_ids,
    reassignment_requests,
    reassignment_views,
    reassignments,
    rollout_brakes,
    rollout_orders,
    rollout_plans,
    rollout_views,
    rollouts,
    scram_users,
    strays,
    throttles,
    topic_requests,
    topics,
)
from controller.model.context import ControllerContext
from controller.model.deletion_progress import is_done
from controller.model.placement import Start
from controller.model.rounds import Rounds, immediately
from controller.node.many_moves import REQUESTS_PER_EVENT
from controller.progress.tracker import moves_of
from transport import messages
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages.features import UpdateFeaturesRequest, UpdateFeaturesResponse
from transport.messages.users import AlterScramUsersRequest

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


def _taking(rounds: Callable[..., Rounds[object]], *fields: str) -> Handler:
    """Return the handler that passes the context and these fields of the event or request to `rounds`.

    Without fields, `rounds` reads the store to find what changed.
    """
    return lambda context, event, _host: rounds(context, *(getattr(event, name) for name in fields))


def _reading(answer: Callable[..., object], *fields: str) -> Handler:
    """Return the same for an answer that follows from the context alone."""
    return _taking(lambda *given: immediately(answer(*given)), *fields)


def _modified(context: ControllerContext, event: events.PartitionModifications, host: Host) -> Rounds[None]:
    return topics.partition_modifications(context, [event.topic, *event.more.close()], new_ids(host))


def _deleted(context: ControllerContext, event: events.ReplicasDeleted, _host: Host) -> Rounds[list[str]]:
    if context.strays or context.strays.recalled:
        yield from strays.deleted(context, event.deletions)
    return (yield from deletion.replicas_deleted(context, event.broker_id, event.orders))


def _not_deleted(context: ControllerContext, event: events.ReplicasNotDeleted, _host: Host) -> Rounds[None]:
    yield from strays.not_deleted(context, event.replicas)
    yield from deletion.replicas_not_deleted(context, event.replicas)


def _answered(context: ControllerContext, event: events.LeaderAndIsrResponseReceived, _host: Host) -> Rounds[None]:
    epochs = event.broker_epoch, event.controller_epoch
    outcomes = event.outcomes.take()
    return failed_replicas.orders_answered(context, event.broker_id, epochs, outcomes, trio.current_time())


EVENTS: Final[Mapping[type[events.ControllerEvent], Handler]] = {
    # --- the cluster changed ---
    events.BrokerChange: _taking(brokers.broker_change),
    events.BrokerModifications: _taking(brokers.broker_modifications, "broker_id"),
    events.TopicChange: lambda context, _event, host: topics.topic_change(context, new_ids(host)),
    events.PartitionModifications: _modified,
    events.TopicDeletion: _taking(deletion.topic_deletion),
    events.ConfigChange: lambda context, _event, host: config_changes.config_change(context, host.now_ms()),
    events.IsrChangeNotification: _taking(isr_changes.isr_change_notification),
    events.LogDirEventNotification: _taking(log_dirs.log_dir_event_notification),
    # --- requests written to the store ---
    events.PreferredReplicaElection: _taking(leader_elections.requested_in_store),
    events.ZkPartitionReassignment: _taking(reassignment_requests.requested_in_store),
    # --- timers and follow-ups ---
    events.AutoPreferredReplicaLeaderElection: _taking(leader_rebalance.rebalance),
    events.OvertakenLeader: _taking(leader_epochs.thaw_overtaken, "tp", "leadership"),
    events.PartitionReassignmentIsrChange: lambda context, event, _host: reassignments.finish_ready(
        context, event.caught_up.take(context.config.request_limits.operations_in(REQUESTS_PER_EVENT))
    ),
    events.ReassignmentProgress: _reading(moves_of),
    events.RolloutLook: lambda context, _event, _host: rollouts.advance(context, trio.current_time(), looks=True),
    events.RolloutSignalled: _taking(rollout_brakes.signalled, "rollout", "text"),
    events.CopyingSeen: _taking(rollout_orders.adapt, "seconds", "silent", "copied"),
    events.RoomSeen: _taking(rollout_brakes.room_seen, "room", "lacking", "untold"),
    events.RolloutsDue: lambda context, _event, _host: rollouts.advance(context, trio.current_time()),
    events.StrayDeletion: _taking(strays.pursue),
    # --- brokers answered ---
    events.BrokerReleaseSeen: _taking(kafka_brokers.release_seen, "broker_id", "broker_epoch", "release"),
    events.LeaderAndIsrResponseReceived: _answered,
    events.FailedReplicasDue: lambda context, _event, _host: failed_replicas.try_again(context, trio.current_time()),
    events.OrderFailed: _reading(lambda _context: None),  # the retry is scheduled by `alarms`
    events.OrdersResend: _taking(brokers.resend_orders, "broker_id", "broker_epoch"),
    events.DeletionsResend: _taking(brokers.resend_deletions, "broker_id", "broker_epoch", "gone"),
    events.ReplicasDeleted: _deleted,
    events.ReplicasNotDeleted: _not_deleted,
    events.TopicsDeleted: _taking(deletion.topics_deleted, "names"),
}
"""The events that only the active controller processes."""

REQUESTS: Final[Mapping[type[messages.Request[Any]], Handler]] = {
    # --- requests of brokers ---
    messages.AlterPartitionRequest: lambda context, requests, _host: alter_partition.alter_partitions(
        context, requests
    ),
    messages.AllocateProducerIdsRequest: _taking(producer_ids.allocate_producer_ids, "broker_id", "broker_epoch"),
    messages.ControlledShutdownRequest: _taking(controlled_shutdown.controlled_shutdown, "broker_id", "broker_epoch"),
    # --- changes by administrators ---
    messages.AlterPartitionReassignmentsRequest: _taking(reassignment_requests.requested_by_api, "partitions"),
    messages.ChangeRolloutRequest: lambda context, request, _host: rollout_orders.change_rollout(context, request),
    messages.CreatePartitionsRequest: lambda context, request, _host: topic_requests.create_partitions(
        context, request
    ),
    messages.CreateTopicsRequest: lambda context, request, host: topic_requests.create_topics(
        context, request, new_ids(host), new_starts(host)
    ),
    messages.DeleteTopicsRequest: _taking(deletion_markers.delete_topics, "names"),
    messages.ElectLeadersRequest: lambda context, request, _host: leader_elections.requested_by_api(context, request),
    messages.IncrementalAlterConfigsRequest: _taking(config_changes.alter_configs, "resources", "validate_only"),
    messages.StartRolloutRequest: lambda context, request, host: rollout_plans.start(context, request, host.now_ms()),
    messages.UploadRolloutRequest: lambda context, request, _host: rollout_plans.upload(context, request),
    # --- read-only requests ---
    messages.DescribeConfigsRequest: _taking(configs.describe_configs, "resources"),
    messages.DescribeReassignmentsRequest: lambda context, request, _host: throttles.with_throttles(
        reassignment_views.describe_reassignments(context, request.reassignments)
    ),
    messages.DescribeRolloutMovesRequest: _taking(rollout_views.describe_moves, "name", "states", "part"),
    messages.DescribeRolloutsRequest: _reading(rollout_views.describe, "names"),
    messages.DescribeClusterRequest: _reading(metadata.describe_cluster),
    messages.ListPartitionReassignmentsRequest: _reading(reassignment_requests.list_ongoing, "partitions"),
    messages.ListReassignmentsRequest: _reading(reassignment_views.list_reassignments, "partitions"),
    messages.MetadataRequest: _reading(metadata.describe_topics, "topics"),
}
"""The requests that are answered through the event queue; each handler takes what its event has been `asked`."""


OF_KAFKAS_CLIENTS: Final[Mapping[type[messages.Request[Any]], Handler]] = {
    UpdateFeaturesRequest: lambda _context, _request, _host: immediately(UpdateFeaturesResponse()),
    AlterScramUsersRequest: _taking(scram_users.alter_users, "users"),
}
"""The requests that only Kafka's clients have, answered in the same way."""


def rounds_for(context: ControllerContext, event: events.ControllerEvent, host: Host) -> Rounds[object]:
    """Return the rounds of an event that only the active controller processes.

    Raises ApiError(UNSUPPORTED_VERSION) for a request that no controller answers.
    """
    if not isinstance(event, events.RequestEvent):
        return EVENTS[type(event)](context, event, host)
    handler = REQUESTS.get(type(event.request)) or OF_KAFKAS_CLIENTS.get(type(event.request))
    if handler is None:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "no controller answers this api")
    return handler(context, event.asked, host)


def follow_ups(
    context: ControllerContext, event: events.ControllerEvent, result: object, caught_up: CaughtUp
) -> list[events.ControllerEvent]:
    """Return the events to queue after `event` has been processed with a result, when others have had their turn."""
    due: list[events.ControllerEvent] = [events.RolloutsDue()] if context.rollouts.is_stirred else []
    match event:
        case events.ProposalsEvent():
            # A granted ISR may be the one that a move was waiting for.
            items = chain.from_iterable([request.partitions for request in event.asked])
            ready = [item.tp for item in items if reassignments.may_finish(context, item.tp)]
            caught_up.add(ready)
            return [events.PartitionReassignmentIsrChange(caught_up), *due] if ready else due
        case events.PartitionReassignmentIsrChange() if event.caught_up:
            return [event, *due]
        case events.TopicDeletion():
            done = tuple(name for name in context.deletions if is_done(context, name))
            return [*([events.TopicsDeleted(done)] if done else []), *([event] if result else []), *due]
        case events.ReplicasDeleted() | events.TopicsDeleted() if isinstance(result, list) and result:
            return [events.TopicsDeleted(tuple(result)), *due]
        case _:
            return due
