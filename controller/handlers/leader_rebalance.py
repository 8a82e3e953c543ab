"""Leadership goes back to the preferred leaders where too much of it has gone elsewhere.

From time to time, and per preferred leader: while up to `leader_imbalance_per_broker_percentage` of the partitions that
a broker should lead are led by others, nothing happens. No election is tried that cannot succeed (KAFKA-9866); those of
a broker are one round (KAFKA-7299); a reassignment keeps nothing but its own partitions from it (KAFKA-10149).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controller.handlers import leadership
from controller.model import elections
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds
from transport.log import get_logger
from transport.metadata import TopicPartition

log = get_logger(__name__)

FIRST_SECONDS = 5.0
"""How long after it took office a controller looks for the first time."""

_PERCENT = 100


def rebalance(context: ControllerContext) -> Rounds[None]:
    """Elect preferred leaders where too many partitions are led by others."""
    for broker_id, tps in _imbalanced(context):
        able = [tp for tp in tps if _is_electable(context, tp, broker_id)]
        if able:
            log.info("too many partitions have not their preferred leader", broker=broker_id, partitions=len(able))
        yield from leadership.elect(context, able, elections.preferred)


def _imbalanced(context: ControllerContext) -> Iterator[tuple[int, list[TopicPartition]]]:
    """Yield the brokers too many of whose partitions are led by others, and which these are."""
    shares: defaultdict[int, int] = defaultdict(int)
    elsewhere: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for name, topic in context.topics.items():
        if name in context.deletions:
            continue
        for number, assignment in topic.znode.partitions.items():
            tp, preferred = TopicPartition(name, number), assignment.replicas[0]
            shares[preferred] += 1
            current = context.leadership.get(tp)
            if current is not None and current.leader != preferred:
                elsewhere[preferred].append(tp)
    allowed = context.config.leader_imbalance_per_broker_percentage
    for broker_id, tps in sorted(elsewhere.items()):
        if len(tps) * _PERCENT > allowed * shares[broker_id]:
            yield broker_id, tps


def _is_electable(context: ControllerContext, tp: TopicPartition, preferred: int) -> bool:
    is_able = context.is_online(tp, preferred) and preferred in context.leadership[tp].isr
    return is_able and tp not in context.reassigning
