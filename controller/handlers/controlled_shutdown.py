"""Controlled shutdown: a broker that is about to stop gives up leadership and leaves the ISRs (KIP-49).

From then on it counts as shutting down, until its registration is gone or replaced: it may not lead or join an ISR, but
is still notified (KAFKA-7482). The next controller does not know of it, so the broker must ask that one again.
"""

from __future__ import annotations

from controller.handlers import leadership
from controller.model import choosing, elections, registrations
from controller.model.context import ControllerContext
from controller.model.facts import BrokerShuttingDown
from controller.model.rounds import Rounds, Step, apply
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.messages import ControlledShutdownResponse
from transport.metadata import NEVER_LED, TopicPartition

log = get_logger(__name__)


def controlled_shutdown(
    context: ControllerContext, broker_id: int, broker_epoch: int
) -> Rounds[ControlledShutdownResponse]:
    """Move leadership off a broker, then stop its followers and take them out of the ISRs.

    Return the partitions that it still leads although they have other replicas. Raises ApiError with
    BROKER_NOT_AVAILABLE if the registration is not known yet, STALE_BROKER_EPOCH if the broker has registered again.
    """
    _admit(context, broker_id, broker_epoch)
    log.info("a broker shuts down", broker=broker_id, replicas=len(context.partitions_on([broker_id])))
    yield from apply("shutting down", [Step(facts=(BrokerShuttingDown(broker_id),))])
    yield from _hand_over(context, broker_id)
    remaining = [tp for tp in _movable(context, broker_id) if _leader(context, tp) == broker_id]
    if remaining:
        text = "a broker that shuts down still leads: start another member of the ISR, or it stops regardless"
        log.warning(text, broker=broker_id, partitions=list(map(str, remaining)))
    return ControlledShutdownResponse(tuple(remaining))


def _hand_over(context: ControllerContext, broker_id: int) -> Rounds[None]:
    """Write other leaders, and ISRs without the broker's followers, in this order."""

    def choose(tp: TopicPartition) -> elections.Choice | None:
        if context.leadership[tp].leader != broker_id:
            return choosing.without(context, tp, [broker_id])
        return elections.controlled_shutdown(choosing.candidate(context, tp))

    led_first = sorted(_movable(context, broker_id), key=lambda tp: _leader(context, tp) != broker_id)
    yield from leadership.write_choices(context, "leave", led_first, choose)


def _admit(context: ControllerContext, broker_id: int, broker_epoch: int) -> None:
    epoch = registrations.epoch_of(context, broker_id)
    if epoch is None or (epoch < broker_epoch and not registrations.may_ask(context, broker_id, broker_epoch)):
        text = f"broker {broker_id} is not known under epoch {broker_epoch} yet: ask again"
        raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, text)
    if broker_epoch < epoch:
        text = f"broker {broker_id} has registered again under epoch {epoch}: epoch {broker_epoch} is over"
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, text)


def _movable(context: ControllerContext, broker_id: int) -> list[TopicPartition]:
    """Return the partitions on a broker that have other replicas."""
    return [tp for tp in context.partitions_on([broker_id]) if len(context.assignment(tp).replicas) > 1]


def _leader(context: ControllerContext, tp: TopicPartition) -> int:
    return context.leadership.get(tp, NEVER_LED).leader
