"""AlterPartition, by which leaders request new ISRs (KIP-497): the checks in their order, and the write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress

from msgspec.structs import replace

from controller.handlers import leader_epochs
from controller.handlers.leadership import elect_leaders, refresh
from controller.model import registrations
from controller.model.batches import LeadershipSteps
from controller.model.context import ControllerContext
from controller.model.elections import Choice
from controller.model.rounds import Rounds, Step, TellMetadata, apply, commit
from controller.model.state_machines import PartitionPhase
from transport.errors import ApiError, ErrorCode
from transport.messages import AlterPartitionItem, AlterPartitionRequest, AlterPartitionResponse, AlterPartitionResult
from transport.metadata import LeaderAndIsr, LeaderRecoveryState, TopicPartition


def alter_partitions(
    context: ControllerContext, requests: Sequence[AlterPartitionRequest]
) -> Rounds[list[AlterPartitionResponse | ApiError]]:
    """Answer leaders, whose requests are about different partitions.

    The answer is STALE_BROKER_EPOCH unless the broker is live under exactly the epoch of the request, or a hidden one.
    """
    are_live = [registrations.may_ask(context, request.broker_id, request.broker_epoch) for request in requests]
    live = list(compress(requests, are_live))
    before = [leader_epochs.states_before(context, request) for request in live]
    verdicts = {item.tp: _judge(context, request, item) for request in live for item in request.partitions}
    errors = yield from _write(context, verdicts)
    yield from apply(
        "refused", [step for request in live for step in _news(context, request, errors)] if errors else []
    )
    answers = [
        _response(context, request, errors) if is_live else _stale(request)
        for request, is_live in zip(requests, are_live, strict=True)
    ]
    for request, states in zip(live, before, strict=True):
        yield from leader_epochs.thaw(context, request.broker_id, states, errors)
    yield from _replace_failed(context, [tp for tp in verdicts if tp not in errors])
    return answers


def _replace_failed(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
    """Elect members that leaders have let in although they failed, in the controller's eyes, to lead."""
    if context.failures:
        offline = [tp for tp in tps if context.partition_phases.get(tp) is PartitionPhase.OFFLINE]
        yield from elect_leaders(context, offline, only_cleanly=True)


def _write(
    context: ControllerContext, verdicts: Mapping[TopicPartition, LeaderAndIsr | ErrorCode]
) -> Rounds[dict[TopicPartition, ErrorCode]]:
    """Write the leaderships that were granted; return the errors of all other partitions."""
    wanted = {tp: verdict for tp, verdict in verdicts.items() if isinstance(verdict, LeaderAndIsr)}
    choices = [Choice(new.leader, new.isr) for new in wanted.values()]
    steps = LeadershipSteps(context, tuple(wanted), list(wanted.values()), choices)
    rejected = list[Step]()
    refused = yield from commit("ISR", steps, on_rejected=rejected.extend)
    stale = [tp for step in refused for tp in step.subjects]
    yield from refresh(context, stale)
    # Others changed these partitions in the store: the leader learns the new state below, and asks again.
    errors = dict.fromkeys(stale, ErrorCode.INVALID_UPDATE_VERSION)
    errors |= {tp: ErrorCode.OPERATION_NOT_ATTEMPTED for step in rejected for tp in step.subjects}
    return errors | {tp: verdict for tp, verdict in verdicts.items() if not isinstance(verdict, LeaderAndIsr)}


def _stale(request: AlterPartitionRequest) -> ApiError:
    return ApiError(ErrorCode.STALE_BROKER_EPOCH, f"broker {request.broker_id} is registered under another epoch")


def _news(
    context: ControllerContext, request: AlterPartitionRequest, errors: Mapping[TopicPartition, ErrorCode]
) -> Iterator[Step]:
    """Yield the steps that send a leader the states in effect, which it awaits after refusals and may have missed."""
    for tp in dict.fromkeys(item.tp for item in request.partitions):
        if errors.get(tp, ErrorCode.NONE) is not ErrorCode.NONE and tp in context.leadership:
            yield Step((tp,), publications=(TellMetadata((request.broker_id,), (context.describe(tp),)),))


def _response(
    context: ControllerContext, request: AlterPartitionRequest, errors: Mapping[TopicPartition, ErrorCode]
) -> AlterPartitionResponse:
    results = []
    for tp in dict.fromkeys(item.tp for item in request.partitions):
        error = errors.get(tp, ErrorCode.NONE)
        if error is not ErrorCode.NONE:
            results.append(AlterPartitionResult(*tp, error))
            continue
        now = context.leadership[tp]
        recovery = int(now.leader_recovery_state)
        results.append(
            AlterPartitionResult(*tp, error, now.leader, now.leader_epoch, now.isr, now.partition_epoch, recovery)
        )
    return AlterPartitionResponse(tuple(results))


def _judge(
    context: ControllerContext, request: AlterPartitionRequest, item: AlterPartitionItem
) -> LeaderAndIsr | ErrorCode:
    """Return the leadership to write, or the first error that applies; NONE if it is in effect already."""
    tp = item.tp
    current = context.leadership.get(tp)
    topic = context.topics.get(item.topic)
    # The request is about an earlier topic of the same name.
    if topic is not None and item.topic_id and topic.znode.topic_id != item.topic_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if current is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    verdict = _epoch_error(request.broker_id, item, current)
    if verdict is None:
        verdict = _isr_error(request.broker_id, item, current, context)
    if verdict is not None:
        return verdict
    return replace(
        current,
        isr=item.new_isr,
        partition_epoch=current.partition_epoch + 1,
        controller_epoch=context.epoch,
        leader_recovery_state=LeaderRecoveryState(item.leader_recovery_state),
    )


def _epoch_error(broker_id: int, item: AlterPartitionItem, current: LeaderAndIsr) -> ErrorCode | None:
    if item.partition_epoch > current.partition_epoch or item.leader_epoch > current.leader_epoch:
        # The leader has seen a later epoch than we have, so we may have been deposed (KAFKA-14154).
        return ErrorCode.NOT_CONTROLLER
    if item.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    asked = (broker_id, item.new_isr, item.leader_recovery_state)
    if asked == (current.leader, current.isr, int(current.leader_recovery_state)):
        # A retry of a request that was granted, but whose answer was lost (KAFKA-14144).
        return ErrorCode.NONE
    if item.partition_epoch < current.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    # Stricter than Kafka: only the current leader may change the ISR.
    return None if broker_id == current.leader else ErrorCode.INVALID_REQUEST


def _isr_error(
    broker_id: int, item: AlterPartitionItem, current: LeaderAndIsr, context: ControllerContext
) -> ErrorCode | None:
    isr, recovery = item.new_isr, item.leader_recovery_state
    # Only an unclean election begins a recovery, and until its end the leader is the whole ISR (KIP-704).
    if recovery == LeaderRecoveryState.RECOVERING:
        begins = current.leader_recovery_state is LeaderRecoveryState.RECOVERED
        if begins or len(isr) > 1:
            return ErrorCode.INVALID_REQUEST
    elif recovery != LeaderRecoveryState.RECOVERED:
        return ErrorCode.INVALID_REQUEST
    # Stricter than Kafka: the ISR must contain the leader and no duplicates.
    if broker_id not in isr or len(set(isr)) != len(isr):
        return ErrorCode.INVALID_REQUEST
    tp = item.tp
    if not set(isr) <= set(context.assignment(tp).replicas):
        # The leader may not know yet that a move removed the replica. INVALID_REQUEST would make it wait for an epoch.
        return ErrorCode.INELIGIBLE_REPLICA
    # A replica on a broker that is shutting down may stay in the ISR, so that the last leader can still admit others,
    # but it may not join. Nor may one on an unaddressable broker, which cannot be sent who leads. One that failed to
    # lead follows, so it may do both.
    served = {r for r in isr if context.is_served(tp, r)}
    able = {r for r in served if r in current.isr or r not in context.shutting_down}
    stays = {r for r in current.isr if context.is_unaddressable(r)}
    return None if able.union(stays).issuperset(isr) else ErrorCode.INELIGIBLE_REPLICA
