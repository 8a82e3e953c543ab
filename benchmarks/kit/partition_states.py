"""The partition states that benchmarks read, write and watch, in Kafka's format."""

from __future__ import annotations

from typing import Final

from benchmarks.kit.cluster import Shape, create_topics, state_znodes
from transport.store import paths
from transport.store.protocol import MetadataStore, ensure_paths

PARTITIONS_PER_TOPIC: Final = 100


def _shape(partitions: int) -> Shape:
    return Shape(partitions // PARTITIONS_PER_TOPIC, PARTITIONS_PER_TOPIC)


def state_paths(partitions: int) -> list[str]:
    """List the paths of the states of this many partitions."""
    return [path for path, _ in state_znodes(_shape(partitions))]


def state_of(number: int, leader_epoch: int = 0) -> bytes:
    """Return a partition's state as Kafka writes it."""
    leader = number % 300
    isr = f"{leader},{leader + 1},{leader + 2}"
    text = f'{{"controller_epoch":7,"leader":{leader},"version":1,"leader_epoch":{leader_epoch},"isr":[{isr}]}}'
    return text.encode()


async def create_states(store: MetadataStore, partitions: int) -> None:
    """Create the states and everything above them."""
    await ensure_paths(store, [paths.TOPICS])
    await create_topics(store, _shape(partitions))
