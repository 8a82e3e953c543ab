"""Moves of real replicas that are held in the middle by a throttle of Kafka's, whoever is the controller."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio
from attrs import frozen
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from controller.admin.move_admin import MoveAdmin
from controller.admin.znode_moves import open_znode_moves
from tests.kafka.real_cluster import RealCluster, until
from tests.kafka.traffic import FLUSH_SECONDS, Written
from transport.errors import ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource as KlammResource,
    ConfigResourceType,
    ReassignablePartition,
)
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import MetadataStore

BYTES: Final = 50_000
RECORDS: Final = 200
"""Much more than a fetch may return: a throttled follower gets one, and waits for a dozen seconds."""

_RATE: Final = "follower.replication.throttled.rate"
_REPLICAS: Final = "follower.replication.throttled.replicas"


@frozen
class Move:
    """The replicas that the topic's znode says a partition gains and loses, and its ISR."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: frozenset[int]


def addresses_of(cluster: RealCluster) -> str:
    """Return the addresses of the brokers for clients, which log in nowhere."""
    return ",".join(cluster.clients.values())


async def fill(cluster: RealCluster, topic: str) -> Written:
    """Write large records to a topic."""
    written = Written()
    await trio.to_thread.run_sync(_fill, addresses_of(cluster), topic, written)
    assert written.errors == []
    return written


def _fill(bootstrap: str, topic: str, written: Written) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(topic, f"large-{number}-".encode().ljust(BYTES, b"."), on_delivery=written.take)
    written.errors += ["not acknowledged in time"] * producer.flush(FLUSH_SECONDS)


async def create_held(cluster: RealCluster, topic: str, *replicas: int) -> None:
    """Create a topic whose replicas a broker's throttle applies to while they are not in the ISR."""
    await cluster.create(topic, replicas)
    # Brokers heed the settings of throttles that change, not those with which a topic begins.
    changed = AlterableConfig(_REPLICAS, ConfigOperation.SET, "*")
    resource = AlterConfigsResource(KlammResource(ConfigResourceType.TOPIC, topic), (changed,))
    [altered] = await cluster.admin.incremental_alter_configs([resource])
    assert altered.error is ErrorCode.NONE


@asynccontextmanager
async def held(cluster: RealCluster, follower: int) -> AsyncIterator[None]:
    """Let a broker get next to nothing of new replicas until the end of the block."""
    admin = AdminClient({"bootstrap.servers": addresses_of(cluster)})
    await trio.to_thread.run_sync(_alter, admin, follower, AlterConfigOpType.SET)
    yield
    await trio.to_thread.run_sync(_alter, admin, follower, AlterConfigOpType.DELETE)


def _alter(admin: AdminClient, broker_id: int, operation: AlterConfigOpType) -> None:
    changed = ConfigEntry(_RATE, "1", incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker_id), incremental_configs=[changed])
    [done] = admin.incremental_alter_configs([resource]).values()
    done.result()


async def begin(moves: MoveAdmin, topic: str, *replicas: int) -> None:
    """Order a move of the first partition of a topic."""
    [begun] = (await moves.alter_partition_reassignments([ReassignablePartition(topic, 0, replicas)])).partitions
    assert begun.error is ErrorCode.NONE, begun


async def begin_under_kafka(store: MetadataStore, topic: str, *replicas: int) -> None:
    """Order a move from Kafka's own controller."""
    async with open_znode_moves(store, FLUSH_SECONDS) as moves:
        await begin(moves, topic, *replicas)


async def move_of(store: MetadataStore, topic: str) -> Move:
    """Read the znodes of the first partition of a topic."""
    tp = TopicPartition(topic, 0)
    assigned, state = await store.read([paths.topic(topic), paths.partition_state(tp)])
    assert assigned is not None
    assert state is not None
    written = json.loads(assigned.data)
    adding, removing = (tuple(written[name].get("0", ())) for name in ("adding_replicas", "removing_replicas"))
    isr = formats.decode_partition_state(tp, state.data, state.stat.version).isr
    return Move(tuple(written["partitions"]["0"]), adding, removing, frozenset(isr))


async def until_begun(store: MetadataStore, topic: str, adding: int, removing: int) -> None:
    """Wait until a move that adds one replica and removes one is in the topic's znode."""

    async def has_begun() -> bool:
        move = await move_of(store, topic)
        return (move.adding, move.removing) == ((adding,), (removing,))

    await until(has_begun)


async def until_moved(store: MetadataStore, topic: str, *replicas: int) -> None:
    """Wait until a move is over, and all its replicas are in the ISR."""
    wanted = Move(replicas, (), (), frozenset(replicas))

    async def is_over() -> bool:
        return await move_of(store, topic) == wanted

    await until(is_over)
