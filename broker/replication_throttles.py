"""Which replicas of this broker are throttled, and to what rates (KIP-73), kept fresh while it runs.

The rates are settings of the broker, or of the default of all brokers; topics say which of their replicas they are for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog
import trio

from actors import Backoff
from broker.replication_quota import ReplicationQuota
from broker.topic_configs import decode_layer
from broker.wakeup import Wakeup
from transport.dynamic_configs import (
    BROKER_SETTINGS,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    TOPIC_SETTINGS,
    Layer,
    in_force,
    parse_replicas,
)
from transport.host import Host
from transport.metadata import TopicPartition
from transport.settings import LONG_MAX
from transport.store import paths
from transport.store.protocol import MetadataStore, StoreError

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Partitions = frozenset[int] | None
"""Partitions of a topic, None for all of them."""


class ReplicationThrottles:
    """The quotas of a broker as leader and as follower, and which of its replicas they are for.

    Without the store those last read stay in force. The settings of topics are read only while there is a rate.
    """

    def __init__(self, store: MetadataStore, broker_id: int, host: Host) -> None:
        self._store = store
        self._broker_id = broker_id
        self._host = host
        self._leading: Mapping[str, Partitions] = {}
        self._following: Mapping[str, Partitions] = {}
        self.leader = ReplicationQuota()
        """What this broker may send as leader."""

        self.follower = ReplicationQuota()
        """What this broker may fetch as follower."""

    def throttles_leader(self, tp: TopicPartition) -> bool:
        """Whether this broker, as leader, keeps to its rate for a partition."""
        return self.leader.is_limited and _has(self._leading, tp)

    def throttles_follower(self, tp: TopicPartition) -> bool:
        """Whether this broker, as follower, keeps to its rate for a partition."""
        return self.follower.is_limited and _has(self._following, tp)

    async def keep_fresh(self, changed: Wakeup) -> None:
        """Read again whenever settings may have changed, until cancelled."""
        backoff = Backoff(jitter=self._host.rng.random)
        while True:
            await changed.wait()
            while True:
                try:
                    await self._read()
                except StoreError:
                    await trio.sleep(backoff.next())
                    continue
                backoff.reset()
                break

    async def _read(self) -> None:
        layers = await self._layers([paths.broker_config(self._broker_id), paths.broker_config(None)])
        leader, follower = (self._rate(name, layers) for name in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE))
        names: list[str] = []
        if min(leader, follower) < LONG_MAX:
            names = (await self._store.children([paths.TOPIC_CONFIGS]))[0] or []
        topics = dict(zip(names, await self._layers([paths.topic_config(name) for name in names]), strict=True))
        self._leading = self._partitions(LEADER_THROTTLED_REPLICAS, topics)
        self._following = self._partitions(FOLLOWER_THROTTLED_REPLICAS, topics)
        now = trio.current_time()
        self.leader.alter(leader, now)
        self.follower.alter(follower, now)

    async def _layers(self, wanted: Sequence[str]) -> list[Layer]:
        found = await self._store.read(wanted) if wanted else []
        return [decode_layer(path, znode) for path, znode in zip(wanted, found, strict=True)]

    def _rate(self, name: str, layers: Sequence[Layer]) -> int:
        force = in_force(BROKER_SETTINGS[name], layers)
        for fault in force.faults:
            _log.error("a setting is set aside: alter it with `klamm config alter`", fault=fault)
        return int(force.value)

    def _partitions(self, name: str, topics: Mapping[str, Layer]) -> dict[str, Partitions]:
        found: dict[str, Partitions] = {}
        for topic, layer in topics.items():
            force = in_force(TOPIC_SETTINGS[name], [layer])
            for fault in force.faults:
                _log.error("a setting is set aside: alter it with `klamm config alter`", topic=topic, fault=fault)
            replicas = parse_replicas(str(force.value))
            mine = (
                None if replicas is None else frozenset(p for p, broker_id in replicas if broker_id == self._broker_id)
            )
            if mine is None or mine:
                found[topic] = mine
        return found


def _has(partitions: Mapping[str, Partitions], tp: TopicPartition) -> bool:
    numbers = partitions.get(tp.topic, frozenset())
    return numbers is None or tp.partition in numbers
