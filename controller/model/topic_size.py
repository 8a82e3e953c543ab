"""Size limits of a topic's znode, which holds all its partitions: ZooKeeper refuses more than 1 MB. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from transport.metadata import ReplicaAssignment
from transport.store.formats import TopicZnode, encode_topic

MAX_TOPIC_BYTES: Final = 900_000
"""The largest topic znode that we write; the rest of a request is for what is written together with it."""

MAX_FOUND_BYTES: Final = 950_000
"""The largest topic znode accepted from others: we could not rewrite a larger one, not even to end a move."""


def size_fault(name: str, znode: TopicZnode, changed: Mapping[int, ReplicaAssignment]) -> str | None:
    """Return why a topic's znode cannot take the `changed` partitions, or None if it can.

    A change that does not make the znode larger is always valid, so that moves can end and can be cancelled.
    """
    size = len(encode_topic(evolve(znode, partitions={**znode.partitions, **changed})))
    if size <= MAX_TOPIC_BYTES or size <= len(encode_topic(znode)):
        return None
    return (
        f"with {len(changed)} of its partitions changed, the znode of topic {name} would have {size} bytes, "
        f"and ZooKeeper's limit of 1 MB leaves it {MAX_TOPIC_BYTES}: move fewer of them at a time"
    )
