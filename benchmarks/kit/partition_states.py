"""The partition states that benchmarks read, write and watch, in Kafka's format."""

from __future__ import annotations

from typing import Final

from transport.store.protocol import Create, MetadataStore, ensure_paths

PARTITIONS_PER_TOPIC: Final = 100
OPS_PER_MULTI: Final = 500


def topic_paths(partitions: int) -> list[str]:
    """List the paths of topics with this many partitions in total."""
    return [f"/brokers/topics/topic-{number:04}" for number in range(partitions // PARTITIONS_PER_TOPIC)]


def state_paths(partitions: int) -> list[str]:
    """List the paths of the states of this many partitions."""
    numbers = range(PARTITIONS_PER_TOPIC)
    return [f"{topic}/partitions/{number}/state" for topic in topic_paths(partitions) for number in numbers]


def state_of(number: int, leader_epoch: int = 0) -> bytes:
    """Return a partition's state as Kafka writes it."""
    leader = number % 300
    isr = f"{leader},{leader + 1},{leader + 2}"
    text = f'{{"controller_epoch":7,"leader":{leader},"version":1,"leader_epoch":{leader_epoch},"isr":[{isr}]}}'
    return text.encode()


async def create_states(store: MetadataStore, partitions: int) -> None:
    """Create the states and everything above them."""
    await ensure_paths(store, ["/brokers/topics"])
    topics, states = topic_paths(partitions), state_paths(partitions)
    ops = [Create(path) for path in topics]
    ops += [Create(f"{path}/partitions") for path in topics]
    ops += [Create(path.removesuffix("/state")) for path in states]
    ops += [Create(path, state_of(number)) for number, path in enumerate(states)]
    for start in range(0, len(ops), OPS_PER_MULTI):
        await store.multi(ops[start : start + OPS_PER_MULTI])
