"""A cluster at one moment, as ZooKeeper, each broker, and the brokers' disks show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import trio
from attrs import frozen

from broker.reference.log_dir import TOPIC_ID_FILE
from controller.monitoring.state_dump import dump
from klamm.cli.demo.clusters import log_dir
from tests.cluster.kills_and_pauses.nodes import BROKERS
from transport.errors import ApiError
from transport.messages import BrokerEndpoint, MetadataRequest, MetadataResponse, PartitionState
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import MetadataStore
from transport.wire import WireError, open_connection

ANSWER_SECONDS: Final = 5.0


@frozen
class Picture:
    """The state of the cluster, by partition and by broker."""

    controller: int | None
    epoch: int | None
    brokers: Mapping[int, BrokerEndpoint]
    """Those that are registered."""

    states: Mapping[TopicPartition, PartitionState]
    """As ZooKeeper has them; without those that have no state yet, which `pending` names."""

    pending: Sequence[str]
    """The work that ZooKeeper lists as pending, and the data that cannot be decoded."""

    metadata: Mapping[int, MetadataResponse]
    """The answer of each broker to Metadata; brokers that do not answer are missing."""

    disks: Mapping[int, Mapping[str, str]]
    """On each broker's disk the directories of replicas, with the topic id in each."""


async def look(store: MetadataStore, folder: Path, broker_ids: Sequence[int] = BROKERS) -> Picture:
    """Look at everything: `broker_ids` are the brokers with directories in `folder`. Raises StoreError."""
    dumped = await dump(store)
    topics, states = await _states(store)
    bare = [f"{tp} has no state" for tp in topics if tp not in states]
    brokers = {b["id"]: BrokerEndpoint(b["id"], b["host"], b["port"], b["rack"]) for b in dumped["brokers"]}
    return Picture(
        dumped["controller"]["id"],
        dumped["controller"]["epoch"],
        brokers,
        states,
        [*_requests(dumped), *await _below(store), *bare],
        await _metadata(brokers.values()),
        {id_: on_disk(log_dir(folder, id_)) for id_ in broker_ids},
    )


def on_disk(directory: Path) -> dict[str, str]:
    """Return the directories in a log directory, each with the topic id in it, "" if there is none."""
    found = {}
    for path in directory.iterdir():
        if path.is_dir():
            id_file = path / TOPIC_ID_FILE
            found[path.name] = id_file.read_text(encoding="utf-8") if id_file.exists() else ""
    return found


def _requests(dumped: Mapping[str, Any]) -> list[str]:
    moves = [f"{row['topic']}-{row['partition']} is still to be moved" for row in dumped["reassign_partitions"]]
    deletions = [f"{name} is still to be deleted" for name in dumped["delete_topics"]]
    return [*moves, *deletions, *(f"undecodable: {fault}" for fault in dumped["undecodable"])]


async def _below(store: MetadataStore) -> list[str]:
    strays, moves = await store.children([paths.STRAYS, paths.REASSIGNMENTS])
    return [f"a stray: {name}" for name in strays or ()] + [f"moves of {name} are not over" for name in moves or ()]


async def _states(store: MetadataStore) -> tuple[list[TopicPartition], dict[TopicPartition, PartitionState]]:
    """Return all partitions, and the states of those that have one."""
    [names] = await store.children([paths.TOPICS])
    znodes = await store.read([paths.topic(name) for name in names or ()])
    topics = {
        name: formats.decode_topic(name, znode.data)
        for name, znode in zip(names or (), znodes, strict=True)
        if znode is not None
    }
    tps = [TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions]
    states = {}
    for tp, znode in zip(tps, await store.read([paths.partition_state(tp) for tp in tps]), strict=True):
        if znode is not None:
            topic = topics[tp.topic]
            leadership = formats.decode_partition_state(tp, znode.data, znode.stat.version)
            states[tp] = PartitionState.of(tp, topic.topic_id or "", topic.partitions[tp.partition], leadership)
    return tps, states


async def _metadata(brokers: Iterable[BrokerEndpoint]) -> dict[int, MetadataResponse]:
    answers: dict[int, MetadataResponse] = {}

    async def ask(broker: BrokerEndpoint) -> None:
        with suppress(ApiError, WireError):
            async with open_connection(
                TcpNetwork(), broker.host, broker.port, client_id="test", connect_timeout=ANSWER_SECONDS
            ) as connection:
                answers[broker.id] = await connection.call(MetadataRequest(), timeout=ANSWER_SECONDS)

    async with trio.open_nursery() as nursery:
        for broker in brokers:
            nursery.start_soon(ask, broker)
    return answers
