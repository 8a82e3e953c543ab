"""Automatic preferred leader election for brokers too many of whose partitions are led by others.

The check is periodic and per preferred leader. Up to `leader_imbalance_per_broker_percentage` of the partitions that a
broker should lead may be led by others. Elections that cannot succeed are not attempted (KAFKA-9866), all elections for
one broker form one round (KAFKA-7299), and only partitions that are being reassigned are excluded (KAFKA-10149).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controller.handlers import leadership
from controller.model import choosing, elections
from controller.model.context import ControllerContext
from controller.model.known_topics import assignments_of
from controller.model.rounds import Rounds
from transport.log import get_logger
from transport.metadata import TopicPartition

log = get_logger(__name__)

FIRST_SECONDS = 5.0
"""The delay between taking office and the first check."""

_PERCENT = 100


def rebalance(context: ControllerContext) -> Rounds[None]:
    """Elect preferred leaders where too many partitions are led by others."""
    for broker_id, tps in _imbalanced(context):
        there = yield from leadership.read_again(context, tps)
        able = [tp for tp in there if tp not in context.reassigning and _is_electable(context, tp)]
        if able:
            log.info("electing a preferred leader that leads too few", broker=broker_id, partitions=len(able))
        yield from leadership.elect(context, able, elections.preferred)


def _imbalanced(context: ControllerContext) -> Iterator[tuple[int, list[TopicPartition]]]:
    """Yield each broker too many of whose preferred partitions are led by others, with these partitions."""
    shares: defaultdict[int, int] = defaultdict(int)
    elsewhere: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    tps = context.partitions([name for name in context.topics if name not in context.deletions])
    for tp, assignment in zip(tps, assignments_of(context.topics, tps), strict=True):
        preferred, current = assignment.replicas[0], context.leadership.get(tp)
        shares[preferred] += 1
        if current is not None and current.leader != preferred:
            elsewhere[preferred].append(tp)
    allowed = context.config.leader_imbalance_per_broker_percentage
    for broker_id, tps in sorted(elsewhere.items()):
        if len(tps) * _PERCENT > allowed * shares[broker_id]:
            yield broker_id, tps


def _is_electable(context: ControllerContext, tp: TopicPartition) -> bool:
    return elections.preferred(choosing.candidate(context, tp)) is not None
