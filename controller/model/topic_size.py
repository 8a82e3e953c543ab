"""How large a topic's znode may become: all its partitions are in it, and ZooKeeper refuses what is over 1 MB. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from transport.metadata import ReplicaAssignment
from transport.store.formats import TopicZnode, encode_topic

MAX_TOPIC_BYTES: Final = 900_000
"""What a topic's znode may weigh; the rest of a request is for what is written together with it."""

MAX_FOUND_BYTES: Final = 950_000
"""The largest topic znode by others that is accepted: we could not write a larger one again, even to end a move."""


def size_fault(name: str, znode: TopicZnode, changed: Mapping[int, ReplicaAssignment]) -> str | None:
    """Return why a topic's partitions cannot be `changed` like this, None if they can.

    A change that makes it no larger is always fine, so that moves can end and can be cancelled.
    """
    size = len(encode_topic(evolve(znode, partitions={**znode.partitions, **changed})))
    if size <= MAX_TOPIC_BYTES or size <= len(encode_topic(znode)):
        return None
    return (
        f"with {len(changed)} of its partitions changed, the znode of topic {name} would have {size} bytes, "
        f"and ZooKeeper's limit of 1 MB leaves it {MAX_TOPIC_BYTES}: move fewer of them at a time"
    )
