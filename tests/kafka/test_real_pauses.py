"""How long a producer waits while the leader of its partition moves, under our controller and under Kafka's own."""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.kafka.expectations import require_all_read
from tests.kafka.real_cluster import real_cluster, until
from tests.kafka.traffic import Written, until_more, writing
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore
from transport.store.zookeeper import open_zookeeper

MOVED: Final = TopicPartition("moved", 0)
TARGETS: Final = ((2, 3), (3, 1), (1, 2))
"""The replicas to move to, in turn: the leader leaves, and the follower leads."""

IN_A_ROW: Final = 3
"""The number of moves in one term of office."""

TERMS: Final = 5
"""The number of terms of each controller."""

STEADY: Final = 200
"""The number of records acknowledged before a move and after it."""

MOST: Final = 1.5
"""The most that our median may be, as a multiple of Kafka's."""


@pytest.mark.soak
async def test_a_move_pauses_a_producer_no_longer_than_kafkas(zookeeper: str, tmp_path: Path, release: str) -> None:
    running = real_cluster(f"{zookeeper}/pauses-{tmp_path.name}", tmp_path, release=release)
    pauses: dict[str, list[float]] = {"klamm": [], "kafka": []}
    targets = itertools.cycle(TARGETS)
    async with running as cluster, open_zookeeper(cluster.zookeeper) as store:
        await cluster.create(MOVED.topic, (1, 2))
        async with writing(cluster.bootstrap, MOVED.topic) as written:
            # Classes are loaded at a cluster's first move.
            await pause_of(store, written, next(targets))
            for _ in range(TERMS):
                pauses["klamm"] += [await pause_of(store, written, next(targets)) for _ in range(IN_A_ROW)]
                await cluster.hand_over("release")
                pauses["kafka"] += [await pause_of(store, written, next(targets)) for _ in range(IN_A_ROW)]
                await cluster.hand_over("take-over")
        await require_all_read(cluster, MOVED.topic, written)
    medians = {name: statistics.median(of) for name, of in pauses.items()}
    for name, of in pauses.items():
        listed = " ".join(f"{pause * 1000:.0f}" for pause in of)
        sys.stdout.write(f"{release} {name}: pauses of {listed} ms, median {medians[name] * 1000:.0f} ms\n")
    sys.stdout.write(f"{release}: ratio of the medians {medians['klamm'] / medians['kafka']:.2f}\n")
    assert medians["klamm"] <= MOST * medians["kafka"]


async def pause_of(store: MetadataStore, written: Written, target: Sequence[int]) -> float:
    """Move the partition in the way that both controllers know, and return the longest pause meanwhile."""
    await until_more(written, STEADY)
    since = trio.current_time()
    request = formats.encode_reassign_partitions({MOVED: tuple(target)})
    await store.multi([Create(paths.REASSIGN_PARTITIONS, request)])
    await until(partial(is_moved, store, tuple(target)))
    await until_more(written, STEADY)
    return written.longest_pause(since)


async def is_moved(store: MetadataStore, target: tuple[int, ...]) -> bool:
    """Return whether the request is gone, and the partition has its replicas and a leader among them."""
    requests, topic, state = await store.read(
        [paths.REASSIGN_PARTITIONS, paths.topic(MOVED.topic), paths.partition_state(MOVED)]
    )
    assert topic is not None
    assert state is not None
    assignment = formats.decode_topic(MOVED.topic, topic.data).partitions[0]
    return (
        requests is None
        and not assignment.is_being_reassigned
        and assignment.replicas == target
        and formats.decode_partition_state(MOVED, state.data, 0).leader == target[0]
    )
