"""The reasons to refuse requests: rules that the controller shares with clients that check before they ask. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from attrs import evolve

from controller.model.reassignment import reassign_to
from transport.errors import ErrorCode, Fault
from transport.metadata import MAX_NUMBER, OfReplicas, ReplicaAssignment, TopicPartition
from transport.store.formats import TopicZnode, encode_topic
from transport.store.limits import DEFAULT_LIMITS, RequestLimits

# ZooKeeper refuses a znode of more than 1 MB, and that of a topic holds all its partitions.
_REPLICA_BYTES: Final = 70
"""The most bytes for each replica: it is listed twice at most, and each list of a partition has a key."""

_ELSE_BYTES: Final = 1_000
"""The most bytes for the rest of the znode, if others have added nothing."""


def unknown_topic(name: str) -> Fault:
    """Return the fault of a request about a topic that does not exist."""
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}: see `klamm topic list`"


def partition_fault(tp: TopicPartition, current: OfReplicas, *, is_being_deleted: bool) -> Fault | None:
    """Return why there is nothing to do for a partition, None if it is there to stay."""
    if not current.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}"
    if is_being_deleted:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {tp.topic} is being deleted"
    return None


def replicas_fault(replicas: Sequence[int]) -> str | None:
    """Return why a partition cannot have a list of replicas on any cluster, None if it can."""
    if not replicas:
        return "the list of replicas is empty"
    listed = f"the list of replicas {list(replicas)}"
    if len(set(replicas)) != len(replicas):
        return f"{listed} names a broker twice"
    if min(replicas) < 0:
        return f"{listed} has a negative broker id"
    return f"{listed} has a broker id above {MAX_NUMBER}" if max(replicas) > MAX_NUMBER else None


def target_fault(current: OfReplicas, target: Sequence[int], live: Collection[int]) -> Fault | None:
    """Return why `target` must be refused, None if it is valid. Kept replicas may be dead, added ones may not."""
    text = replicas_fault(target)
    dead = [r for r in target if r not in current.origin_replicas and r not in live]
    if text is None and dead:
        text = f"replicas cannot be added on brokers {dead}, which are not alive"
    return None if text is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def move_fault(
    tp: TopicPartition, current: OfReplicas, target: Sequence[int], live: Collection[int], *, is_being_deleted: bool
) -> Fault | None:
    """Return why a partition cannot be moved to `target`, None if it can."""
    return partition_fault(tp, current, is_being_deleted=is_being_deleted) or target_fault(current, target, live)


def outgrown(
    topics: Mapping[str, TopicZnode],
    targets: Mapping[TopicPartition, tuple[int, ...]],
    limits: RequestLimits = DEFAULT_LIMITS,
) -> dict[TopicPartition, Fault]:
    """Return the faults of topics whose moves together would make their znode too large, for each partition."""
    by_topic: defaultdict[str, dict[int, ReplicaAssignment]] = defaultdict(dict)
    for tp, target in targets.items():
        by_topic[tp.topic][tp.partition] = reassign_to(topics[tp.topic].partitions[tp.partition], target)
    texts = {name: _size_fault(name, topics[name], moving, limits) for name, moving in by_topic.items()}
    faults = ((tp, texts[tp.topic]) for tp in targets)
    return {tp: (ErrorCode.INVALID_REQUEST, text) for tp, text in faults if text is not None}


def _size_fault(
    name: str, znode: TopicZnode, changed: Mapping[int, ReplicaAssignment], limits: RequestLimits
) -> str | None:
    """Return why a topic's znode cannot take the `changed` partitions, or None if it can.

    A change that does not make the znode larger is always valid, so that moves can end and can be cancelled.
    """
    partitions = {**znode.partitions, **changed}
    replicas = sum([len(assignment.replicas) for assignment in partitions.values()])
    if not znode.unknown and _ELSE_BYTES + _REPLICA_BYTES * replicas <= limits.topic:
        return None
    size = len(encode_topic(evolve(znode, partitions=partitions)))
    if size <= limits.topic or size <= len(encode_topic(znode)):
        return None
    return (
        f"with {len(changed)} of its partitions changed, the znode of topic {name} would have {size} bytes, "
        f"and {limits.text} leaves it {limits.topic}: move fewer of them at a time"
    )
