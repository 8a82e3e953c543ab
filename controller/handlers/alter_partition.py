"""Leaders ask for new ISRs (KIP-497): the table of refusals in its order, and the write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from controller.handlers.leadership import leadership_step, refresh
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, Step, TellMetadata, attempt, change
from transport.errors import ApiError, ErrorCode
from transport.messages import AlterPartitionItem, AlterPartitionRequest, AlterPartitionResponse, AlterPartitionResult
from transport.metadata import LeaderAndIsr, LeaderRecoveryState, TopicPartition


def alter_partition(context: ControllerContext, request: AlterPartitionRequest) -> Rounds[AlterPartitionResponse]:
    """Answer a leader. Raises ApiError(STALE_BROKER_EPOCH) unless the broker is live under just this epoch."""
    broker = context.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"broker {request.broker_id} is registered under another epoch")
    verdicts = {item.tp: _judge(context, request, item) for item in request.partitions}
    wanted = {tp: verdict for tp, verdict in verdicts.items() if isinstance(verdict, LeaderAndIsr)}
    outcome = yield from attempt("ISR", [_step(context, tp, new) for tp, new in wanted.items()])
    stale = [tp for step in outcome.refused for tp in step.subjects]
    yield from refresh(context, stale)
    errors = dict.fromkeys(stale, ErrorCode.INVALID_UPDATE_VERSION)
    errors |= {tp: ErrorCode.OPERATION_NOT_ATTEMPTED for step in outcome.rejected for tp in step.subjects}
    errors |= {tp: verdict for tp, verdict in verdicts.items() if not isinstance(verdict, LeaderAndIsr)}
    yield from change("refused", [_news(context, request.broker_id, tp) for tp in _refused(context, errors)])
    return _response(context, verdicts, errors)


def _step(context: ControllerContext, tp: TopicPartition, new: LeaderAndIsr) -> Step:
    metadata = TellMetadata(None, (context.describe(tp, leadership=new),))
    return leadership_step(tp, new, (metadata,))


def _refused(context: ControllerContext, errors: Mapping[TopicPartition, ErrorCode]) -> list[TopicPartition]:
    return [tp for tp, error in errors.items() if error is not ErrorCode.NONE and tp in context.leadership]


def _news(context: ControllerContext, broker_id: int, tp: TopicPartition) -> Step:
    """Tell a leader what is in force: it waits for that after a refusal, and may have missed it."""
    return Step((tp,), publications=(TellMetadata((broker_id,), (context.describe(tp),)),))


def _response(
    context: ControllerContext,
    tps: Sequence[TopicPartition] | Mapping[TopicPartition, object],
    errors: Mapping[TopicPartition, ErrorCode],
) -> AlterPartitionResponse:
    results = []
    for tp in tps:
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
    """Return the leadership to write, or the first error that applies; NONE if it is in force already."""
    tp = item.tp
    current = context.leadership.get(tp)
    topic = context.topics.get(item.topic)
    if topic is not None and item.topic_id and topic.znode.topic_id != item.topic_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if current is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    verdict = _epoch_error(request.broker_id, item, current)
    if verdict is None:
        verdict = _isr_error(request.broker_id, item, current, context)
    if verdict is not None:
        return verdict
    return evolve(
        current,
        isr=item.new_isr,
        partition_epoch=current.partition_epoch + 1,
        controller_epoch=context.epoch,
        leader_recovery_state=LeaderRecoveryState(item.leader_recovery_state),
    )


def _epoch_error(broker_id: int, item: AlterPartitionItem, current: LeaderAndIsr) -> ErrorCode | None:
    if item.partition_epoch > current.partition_epoch or item.leader_epoch > current.leader_epoch:
        # The leader knows more than we do: we may be the deposed one (KAFKA-14154).
        return ErrorCode.NOT_CONTROLLER
    if item.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    asked = (broker_id, item.new_isr, item.leader_recovery_state)
    if asked == (current.leader, current.isr, int(current.leader_recovery_state)):
        # A request that was granted, and whose answer was lost (KAFKA-14144).
        return ErrorCode.NONE
    if item.partition_epoch < current.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    # Stricter than the original: nobody becomes leader through this request.
    return None if broker_id == current.leader else ErrorCode.INVALID_REQUEST


def _isr_error(
    broker_id: int, item: AlterPartitionItem, current: LeaderAndIsr, context: ControllerContext
) -> ErrorCode | None:
    isr, recovery = item.new_isr, item.leader_recovery_state
    if recovery == LeaderRecoveryState.RECOVERING:
        begins = current.leader_recovery_state is LeaderRecoveryState.RECOVERED
        if begins or len(isr) > 1:
            return ErrorCode.INVALID_REQUEST
    elif recovery != LeaderRecoveryState.RECOVERED:
        return ErrorCode.INVALID_REQUEST
    # Stricter than the original, too: an ISR is a set of replicas with the leader among them.
    if broker_id not in isr or len(set(isr)) != len(isr):
        return ErrorCode.INVALID_REQUEST
    tp = item.tp
    if not set(isr) <= set(context.assignment(tp).replicas):
        # A leader may not know yet that a move removed the replica. INVALID_REQUEST would make it wait for a new epoch.
        return ErrorCode.INELIGIBLE_REPLICA
    # Who is about to stop may stay where it is, so that the last leader can still let others in, but not come in.
    stays = {r for r in current.isr if context.is_served(tp, r)}
    return None if stays.union(context.online(tp, isr)).issuperset(isr) else ErrorCode.INELIGIBLE_REPLICA
