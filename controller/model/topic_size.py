"""Size limits of a topic's znode, which holds all its partitions: ZooKeeper refuses more than 1 MB. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from transport.metadata import ReplicaAssignment
from transport.store.formats import TopicZnode, encode_topic
from transport.store.limits import RequestLimits

_REPLICA_BYTES: Final = 70
"""The most bytes for each replica: it is listed twice at most, and each list of a partition has a key."""

_ELSE_BYTES: Final = 1_000
"""The most bytes for the rest of the znode, if others have added nothing."""


def size_fault(
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
