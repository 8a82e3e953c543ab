"""A dump of the cluster's state from the metadata store, without being its controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar

from controller.monitoring import damage
from transport.kafka.registration import decode_any_registration, is_controllers
from transport.metadata import NEVER_LED, TopicPartition
from transport.store import formats, paths
from transport.store.cluster_id import decode_cluster_id
from transport.store.protocol import ReadableStore, Znode

P = ParamSpec("P")
T = TypeVar("T")
Rows = list[dict[str, Any]]

HEAD: Final = ("controller", "cluster_id", "partial", "brokers")
"""What comes before the partitions in a document."""

_TOPICS: Final = 1_000
"""The number of topics read at once."""


async def dump(store: ReadableStore) -> dict[str, Any]:
    """Read everything into one JSON value: controller, brokers, partitions, requests, and undecodable znodes."""
    partitions: Rows = []
    others = await dump_in_parts(store, partitions.extend)
    head: dict[str, Any] = {name: others[name] for name in HEAD if name in others}
    return {**head, "partitions": partitions, **others}


async def dump_in_parts(store: ReadableStore, take: Callable[[Rows], object]) -> dict[str, Any]:
    """Read everything; pass the partitions of some topics at a time to `take`, and return the rest.

    Args:
        store: The metadata store.
        take: Called with partitions until all have been read.
    """
    faults = await damage.find(store)
    controller, brokers = await _controller(store), await _brokers(store, faults)
    [znode] = await store.read([paths.CLUSTER_ID])
    cluster_id = None if znode is None else _sound(faults, decode_cluster_id, znode.data)
    [names] = await store.children([paths.TOPICS])
    topics = names or []
    for start in range(0, len(topics), _TOPICS):
        take(await _partitions(store, topics[start : start + _TOPICS], faults))
    return {
        "controller": controller,
        "cluster_id": cluster_id,
        "brokers": brokers,
        "reassign_partitions": await _requests(store, faults),
        "delete_topics": (await store.children([paths.DELETE_TOPICS]))[0] or [],
        "undecodable": faults,
    }


async def _controller(store: ReadableStore) -> dict[str, Any]:
    holder, epoch = await store.read([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
    return {
        "id": _decoded(formats.decode_controller, holder, None),
        "epoch": _decoded(formats.decode_controller_epoch, epoch, 0),
    }


def _decoded(decode: Callable[[bytes], int], znode: Znode | None, otherwise: int | None) -> int | None:
    try:
        return otherwise if znode is None else decode(znode.data)
    except formats.UndecodableZnode:
        return otherwise


async def _brokers(store: ReadableStore, faults: list[str]) -> Rows:
    [names] = await store.children([paths.BROKER_IDS])
    ids = sorted(paths.numbers(names or ()))
    found = await store.read([paths.broker(id_) for id_ in ids])
    there = [(id_, znode) for id_, znode in zip(ids, found, strict=True) if znode is not None]
    znodes = [(id_, znode) for id_, znode in there if not is_controllers(id_, znode.data)]
    brokers = [_sound(faults, decode_any_registration, id_, znode.data, znode.stat.czxid) for id_, znode in znodes]
    return [
        {"id": b.id, "host": b.host, "port": b.port, "rack": b.rack, "epoch": b.epoch} for b in brokers if b is not None
    ]


def _sound(faults: list[str], decode: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return a decoded znode; None if it cannot be decoded, which is added to `faults`."""
    try:
        return decode(*args, **kwargs)
    except formats.UndecodableZnode as fault:
        faults.append(str(fault))
        return None


async def _partitions(store: ReadableStore, names: Sequence[str], faults: list[str]) -> Rows:
    found = await store.read([paths.topic(name) for name in names])
    znodes = [(name, znode) for name, znode in zip(names, found, strict=True) if znode is not None]
    decoded = {name: _sound(faults, formats.decode_topic, name, znode.data) for name, znode in znodes}
    topics = {name: topic for name, topic in decoded.items() if topic is not None}
    tps = [TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions]
    states = await store.read([paths.partition_state(tp) for tp in tps])
    return [_partition(tp, topics[tp.topic], znode, faults) for tp, znode in zip(tps, states, strict=True)]


def _partition(tp: TopicPartition, topic: formats.TopicZnode, znode: Znode | None, faults: list[str]) -> dict[str, Any]:
    assignment = topic.partitions[tp.partition]
    state = None
    if znode is not None:
        state = _sound(faults, formats.decode_partition_state, tp, znode.data, znode.stat.version)
    phase = "NewPartition" if state is None else "OnlinePartition" if state.leader >= 0 else "OfflinePartition"
    led = state or NEVER_LED
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "topic_id": topic.topic_id or None,
        "replicas": assignment.replicas,
        "adding_replicas": assignment.adding_replicas,
        "removing_replicas": assignment.removing_replicas,
        "leader": led.leader,
        "isr": led.isr,
        "leader_epoch": led.leader_epoch,
        "controller_epoch": led.controller_epoch,
        "partition_state": phase,
    }


async def _requests(store: ReadableStore, faults: list[str]) -> Rows:
    [znode] = await store.read([paths.REASSIGN_PARTITIONS])
    entries = None if znode is None else _sound(faults, formats.decode_reassign_partitions, znode.data)
    targets = (entries or {}).items()
    return [{"topic": tp.topic, "partition": tp.partition, "replicas": target} for tp, target in targets]
