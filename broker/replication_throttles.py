"""The throttled replicas of this broker and their rates (KIP-73), refreshed while it runs.

The rates are settings of the broker, or of the default of all brokers. Settings of topics name the throttled replicas.
"""

from __future__ import annotations

from collections.abc import Mapping

import trio

from actors import Backoff
from broker.replication_quota import ReplicationQuota
from broker.topic_configs import read_layers, value_in_effect
from broker.wakeup import Wakeup
from transport.dynamic_configs import (
    BROKER_SETTINGS,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    TOPIC_SETTINGS,
    Layer,
    parse_replicas,
)
from transport.host import Host
from transport.metadata import TopicPartition
from transport.settings import LONG_MAX
from transport.store import paths
from transport.store.protocol import MetadataStore, StoreError, children_of

Partitions = frozenset[int] | None
"""Partitions of a topic; None means all."""


class ReplicationThrottles:
    """The quotas of a broker as leader and as follower, and the replicas that they apply to.

    While the store is unavailable, the last known settings stay in effect. The settings of topics are read only if
    there is a limited rate.
    """

    def __init__(self, store: MetadataStore, broker_id: int, host: Host) -> None:
        self._store = store
        self._broker_id = broker_id
        self._host = host
        self._leading: Mapping[str, Partitions] = {}
        self._following: Mapping[str, Partitions] = {}
        self.leader = ReplicationQuota()
        """The quota for sending as leader."""

        self.follower = ReplicationQuota()
        """The quota for fetching as follower."""

    def throttles_leader(self, tp: TopicPartition) -> bool:
        """Return whether the quota of this broker as leader applies to a partition."""
        return self.leader.is_limited and _has(self._leading, tp)

    def throttles_follower(self, tp: TopicPartition) -> bool:
        """Return whether the quota of this broker as follower applies to a partition."""
        return self.follower.is_limited and _has(self._following, tp)

    async def keep_fresh(self, changed: Wakeup) -> None:
        """Read the settings again whenever they may have changed, until cancelled."""
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
        layers = await read_layers(self._store, [paths.broker_config(self._broker_id), paths.broker_config(None)])
        rates = (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)
        leader, follower = (int(value_in_effect(BROKER_SETTINGS[name], layers)) for name in rates)
        names: list[str] = []
        if min(leader, follower) < LONG_MAX:
            names = await children_of(self._store, paths.TOPIC_CONFIGS)
        own = await read_layers(self._store, [paths.topic_config(name) for name in names])
        topics = dict(zip(names, own, strict=True))
        self._leading = self._partitions(LEADER_THROTTLED_REPLICAS, topics)
        self._following = self._partitions(FOLLOWER_THROTTLED_REPLICAS, topics)
        now = trio.current_time()
        self.leader.alter(leader, now)
        self.follower.alter(follower, now)

    def _partitions(self, name: str, topics: Mapping[str, Layer]) -> dict[str, Partitions]:
        found: dict[str, Partitions] = {}
        for topic, layer in topics.items():
            replicas = parse_replicas(str(value_in_effect(TOPIC_SETTINGS[name], [layer], topic=topic)))
            if replicas is None:
                found[topic] = None
                continue
            ours = frozenset(partition for partition, broker_id in replicas if broker_id == self._broker_id)
            if ours:
                found[topic] = ours
        return found


def _has(partitions: Mapping[str, Partitions], tp: TopicPartition) -> bool:
    numbers = partitions.get(tp.topic, frozenset())
    return numbers is None or tp.partition in numbers
