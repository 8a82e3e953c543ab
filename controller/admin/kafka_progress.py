"""The progress of reassignments in a cluster of Kafka's, put together from what several nodes tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from controller.admin.broker_log_dirs import BrokerLogDirs
from transport.dynamic_configs import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    parse_replicas,
)
from transport.kafka.volume import HIDDEN
from transport.messages import (
    UNKNOWN,
    UNTHROTTLED,
    ConfigResource,
    ConfigResourceType,
    DescribeReassignmentsResponse,
    PartitionState,
    ReassignmentDescription,
    ReplicaProgress,
)
from transport.metadata import OfReplicas, TopicPartition

THROTTLES: Final = (
    LEADER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    FOLLOWER_THROTTLED_REPLICAS,
)
"""The settings that slow replicas down."""

Settings = Mapping[ConfigResource, Mapping[str, str]]
"""The settings of topics and brokers; one that is missing is not known."""


@frozen
class Sizes:
    """The sizes of logs, by broker and partition; a broker that did not tell is missing."""

    logs: Mapping[int, Mapping[TopicPartition, int]] = field(factory=dict)

    @classmethod
    def of(cls, dirs: Mapping[int, BrokerLogDirs]) -> Sizes:
        """Return the sizes that brokers told."""
        return cls(
            {
                broker: {log.tp: log.size for one in told.log_dirs for log in one.replicas}
                for broker, told in dirs.items()
                if not told.fault
            }
        )

    def at(self, broker: int, tp: TopicPartition) -> int:
        """Return the size of a replica in bytes, 0 if its broker has none yet, UNKNOWN if it did not tell."""
        told = self.logs.get(broker)
        return UNKNOWN if told is None else told.get(tp, 0)


@frozen
class Throttles:
    """The throttles in effect."""

    settings: Settings

    def leader(self, tp: TopicPartition, broker: int) -> int:
        """Return the bytes per second that a leader may send; UNTHROTTLED, or UNKNOWN if its settings are."""
        return self._rate(tp, broker, LEADER_THROTTLED_REPLICAS, LEADER_THROTTLED_RATE)

    def follower(self, tp: TopicPartition, broker: int) -> int:
        """Return the same for a follower."""
        return self._rate(tp, broker, FOLLOWER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_RATE)

    def _rate(self, tp: TopicPartition, broker: int, replicas: str, rate: str) -> int:
        of_topic = self.settings.get(ConfigResource(ConfigResourceType.TOPIC, tp.topic))
        of_broker = self.settings.get(ConfigResource(ConfigResourceType.BROKER, str(broker)))
        if of_topic is None or of_broker is None:
            return UNKNOWN
        named = parse_replicas(of_topic.get(replicas, ""))
        if named is not None and (tp.partition, broker) not in named:
            return UNTHROTTLED
        value = of_broker.get(rate) or str(UNTHROTTLED)
        # Kafka 2.4 keeps the rates of its brokers to itself.
        return UNKNOWN if value == HIDDEN else int(value)


def described(
    moves: Mapping[TopicPartition, OfReplicas],
    states: Mapping[TopicPartition, PartitionState],
    sizes: Sizes,
    throttles: Throttles,
    rates: Mapping[TopicPartition, float | None],
) -> DescribeReassignmentsResponse:
    """Describe reassignments in progress. A partition that was deleted meanwhile is left out."""
    rows = tuple(
        _described(move, states[tp], sizes, throttles, _rounded(rates.get(tp)))
        for tp, move in sorted(moves.items())
        if tp in states
    )
    known = [row.rate for row in rows if row.rate != UNKNOWN]
    rate = sum(known) if known else UNKNOWN
    left = sum(_left(row.progress, row.adding_replicas) for row in rows)
    return DescribeReassignmentsResponse(rows, rate=rate, eta_ms=_eta(left, rate))


def copied(moves: Mapping[TopicPartition, OfReplicas], sizes: Sizes) -> dict[TopicPartition, int]:
    """Return the bytes that the added replicas of each partition have, as far as all of them are known."""
    found = {tp: [sizes.at(broker, tp) for broker in move.adding_replicas] for tp, move in moves.items()}
    return {tp: sum(has) for tp, has in found.items() if UNKNOWN not in has}


def _described(
    move: OfReplicas, state: PartitionState, sizes: Sizes, throttles: Throttles, rate: int
) -> ReassignmentDescription:
    tp, leader = state.tp, state.leader
    of = sizes.at(leader, tp)
    progress = tuple(
        ReplicaProgress(
            broker,
            log_bytes=sizes.at(broker, tp),
            leader_bytes=of,
            in_sync=broker in state.isr,
            throttle=throttles.follower(tp, broker),
        )
        for broker in move.target_replicas
    )
    return ReassignmentDescription(
        *tp,
        UNKNOWN,
        UNKNOWN,
        leader,
        throttles.leader(tp, leader),
        move.replicas,
        move.adding_replicas,
        move.removing_replicas,
        state.isr,
        move.target_replicas,
        progress,
        rate=rate,
        eta_ms=_eta(_left(progress, move.adding_replicas), rate),
    )


def _rounded(rate: float | None) -> int:
    """Return a rate in bytes per second. One below zero is that of a replica that begins again, and not known."""
    return UNKNOWN if rate is None or rate < 0 else round(rate)


def _left(progress: Iterable[ReplicaProgress], adding: Sequence[int]) -> int:
    """Return the bytes that are still to be copied, as far as they are known."""
    behind = [item for item in progress if item.broker in adding and not item.in_sync]
    known = [item for item in behind if UNKNOWN not in (item.log_bytes, item.leader_bytes)]
    return sum(max(item.leader_bytes - item.log_bytes, 0) for item in known)


def _eta(left: int, rate: int) -> int:
    return left * 1000 // rate if rate > 0 else UNKNOWN
