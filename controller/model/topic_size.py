"""Size limits of a topic's znode, which holds all its partitions: ZooKeeper refuses more than 1 MB. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from transport.metadata import ReplicaAssignment
from transport.store.formats import TopicZnode, encode_topic
from transport.store.limits import RequestLimits


def size_fault(
    name: str, znode: TopicZnode, changed: Mapping[int, ReplicaAssignment], limits: RequestLimits
) -> str | None:
    """Return why a topic's znode cannot take the `changed` partitions, or None if it can.

    A change that does not make the znode larger is always valid, so that moves can end and can be cancelled.
    """
    size = len(encode_topic(evolve(znode, partitions={**znode.partitions, **changed})))
    if size <= limits.topic or size <= len(encode_topic(znode)):
        return None
    return (
        f"with {len(changed)} of its partitions changed, the znode of topic {name} would have {size} bytes, "
        f"and {limits.text} leaves it {limits.topic}: move fewer of them at a time"
    )
