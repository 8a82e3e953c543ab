"""The throttles of moves, from the settings of brokers and topics (KIP-73)."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from msgspec.structs import replace

from controller.handlers.configs import decode_layer
from controller.model.rounds import Rounds, read
from transport.dynamic_configs import (
    BROKER_SETTINGS,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    TOPIC_SETTINGS,
    Layer,
    in_effect,
    parse_replicas,
)
from transport.messages import UNTHROTTLED, DescribeReassignmentsResponse, ReassignmentDescription
from transport.store import paths


def with_throttles(described: DescribeReassignmentsResponse) -> Rounds[DescribeReassignmentsResponse]:
    """Add the throttles in effect to descriptions; a replica in the ISR has none."""
    moves = described.reassignments
    if not moves:
        return described
    topics = sorted({move.topic for move in moves})
    brokers = sorted({broker for move in moves for broker in (move.leader, *move.new_replicas) if broker >= 0})
    wanted = [*map(paths.broker_config, [None, *brokers]), *map(paths.topic_config, topics)]
    znodes = yield from read(wanted)
    found = zip(wanted, znodes, strict=True)
    layers = {path: decode_layer(path, path, znode) or Layer(path, {}) for path, znode in found}
    own = {name: layers[paths.topic_config(name)] for name in topics}
    named = (_named(setting, own) for setting in (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS))
    throttles = _Throttles(layers, *named)
    return replace(described, reassignments=tuple(map(throttles.add_to, moves)))


Replicas = frozenset[tuple[int, int]] | None
"""Replicas of a topic, each a partition's number and a broker's id; None for all."""


def _named(setting: str, topics: Mapping[str, Layer]) -> dict[str, Replicas]:
    values = {name: in_effect(TOPIC_SETTINGS[setting], [layer]).value for name, layer in topics.items()}
    return {name: parse_replicas(str(value)) for name, value in values.items()}


@frozen
class _Throttles:
    layers: Mapping[str, Layer]
    leading: Mapping[str, Replicas]
    following: Mapping[str, Replicas]

    def add_to(self, move: ReassignmentDescription) -> ReassignmentDescription:
        progress = tuple(
            item
            if item.in_sync
            else replace(item, throttle=self._of(self.following, FOLLOWER_THROTTLED_RATE, move, item.broker))
            for item in move.progress
        )
        leader_throttle = self._of(self.leading, LEADER_THROTTLED_RATE, move, move.leader)
        return replace(move, leader_throttle=leader_throttle, progress=progress)

    def _of(self, throttled: Mapping[str, Replicas], rate: str, move: ReassignmentDescription, broker: int) -> int:
        replicas = throttled[move.topic]
        if broker < 0 or (replicas is not None and (move.partition, broker) not in replicas):
            return UNTHROTTLED
        own, default = (self.layers[paths.broker_config(id_)] for id_ in (broker, None))
        return int(in_effect(BROKER_SETTINGS[rate], [own, default]).value)
