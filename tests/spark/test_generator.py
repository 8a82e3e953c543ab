"""Generated clusters: the requested shape, the same cluster for a seed, and any block by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from zlib import crc32

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray

from spark_bridge.errors import PlanError
from spark_bridge.generator.cluster import GeneratedCluster, name_hashes
from spark_bridge.generator.files import rows_of
from spark_bridge.generator.shapes import SHAPES, ClusterShape, Placement, shape_named
from spark_bridge.model.block import BYTES, Block, count_of_blocks, name_hash
from spark_bridge.model.brokers import Brokers

TWO_BLOCKS = ClusterShape(brokers=20, racks=4, topics=70, partitions=100_000)


def generate_blocks(shape: ClusterShape) -> tuple[Brokers, Iterator[Block]]:
    """Return the brokers of a cluster and, one at a time, its blocks."""
    cluster = GeneratedCluster(shape)
    return cluster.brokers, cluster.blocks()


def fingerprint(blocks: Iterable[Block]) -> str:
    """Return a hash of all that blocks hold."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update("\n".join(block.topics).encode())
        for array in (block.topic, block.partition, block.before, block.weights, block.bytes_out, block.tie):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def replicas_by_broker(shape: ClusterShape) -> NDArray[np.int64]:
    brokers, blocks = generate_blocks(shape)
    return sum(
        (np.bincount(b.before.ravel(), minlength=len(brokers)) for b in blocks), np.zeros(len(brokers), np.int64)
    )


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.partitions <= 20_000])
def test_a_shape_has_the_numbers_it_says(name: str) -> None:
    shape = shape_named(name)
    brokers, blocks = generate_blocks(shape)
    all_blocks = list(blocks)
    assert len(brokers) == shape.brokers
    assert len(brokers.rack_names) == shape.racks
    assert sum(map(len, all_blocks)) == shape.partitions
    assert len({topic for block in all_blocks for topic in block.topics}) == shape.topics


def test_partitions_are_in_the_block_of_their_hash_and_in_order() -> None:
    _, blocks = generate_blocks(TWO_BLOCKS)
    seen = 0
    for number, block in enumerate(blocks):
        names = [(block.topics[t], int(p)) for t, p in zip(block.topic, block.partition, strict=True)]
        assert names == sorted(names)
        assert [int(h) for h in block.tie] == [name_hash(*name) for name in names]
        assert set(block.tie % count_of_blocks(TWO_BLOCKS.partitions)) == {number}
        seen += len(set(names))
    assert seen == TWO_BLOCKS.partitions


def test_hashes_of_arrays_are_those_of_single_names() -> None:
    numbers = [0, 7, 9, 10, 99, 100, 12_345, 2**31 - 1]
    hashes = name_hashes(np.full(len(numbers), crc32(b"a.b-"), np.uint32), np.array(numbers, np.int32))
    assert hashes.tolist() == [name_hash("a.b", n) for n in numbers]


def test_a_seed_gives_the_same_cluster_and_another_seed_another() -> None:
    first = fingerprint(GeneratedCluster(TWO_BLOCKS).blocks())
    assert fingerprint(GeneratedCluster(TWO_BLOCKS).blocks()) == first
    assert fingerprint(GeneratedCluster(evolve(TWO_BLOCKS, seed=2)).blocks()) != first


def test_a_block_made_alone_is_the_same() -> None:
    last = list(GeneratedCluster(TWO_BLOCKS).blocks())[-1]
    assert fingerprint([GeneratedCluster(TWO_BLOCKS).block(1)]) == fingerprint([last])


@pytest.mark.parametrize("placement", Placement)
@pytest.mark.parametrize(("factor", "racks"), [(1, 0), (3, 4), (5, 4), (5, 3), (3, 1), (4, 0)])
def test_replicas_are_apart_and_racks_as_far_apart_as_they_can(placement: Placement, factor: int, racks: int) -> None:
    shape = ClusterShape(12, racks, 10, 2_000, replication_factor=factor, placement=placement)
    brokers, blocks = generate_blocks(shape)
    lists = next(blocks).before
    assert lists.shape == (2_000, factor)
    assert all(len(set(row)) == factor for row in lists.tolist())
    if racks:
        per_rack = (brokers.rack[lists][:, :, None] == np.arange(racks)).sum(axis=1)
        assert per_rack.max() <= -(-factor // racks)


def test_older_brokers_are_fuller() -> None:
    counts = replicas_by_broker(ClusterShape(brokers=20, racks=4, topics=200, partitions=20_000, growth=0.5))
    assert counts[:5].min() > 1.2 * counts.mean()
    assert counts[-1] < 0.1 * counts.mean()
    assert all(np.diff(counts[10:].astype(int)) < 0)


@pytest.mark.parametrize(
    ("placement", "fullest"), [(Placement.UNIFORM, 1.0), (Placement.LINEAR, 1.9), (Placement.EXPONENTIAL, 1.95)]
)
def test_placements_differ_in_how_full_the_last_broker_is(placement: Placement, fullest: float) -> None:
    counts = replicas_by_broker(ClusterShape(20, 0, 50, 50_000, replication_factor=1, placement=placement))
    assert counts[-1] / counts.mean() == pytest.approx(fullest, rel=0.05)


def test_sizes_are_skewed_around_the_mean_and_fit_on_the_disks() -> None:
    shape = shape_named("history")
    brokers, blocks = generate_blocks(shape)
    block = next(blocks)
    sizes = np.sort(block.weights[:, BYTES])
    assert sizes.mean() == pytest.approx(shape.mean_bytes, rel=0.1)
    assert sizes[-len(sizes) // 10 :].sum() > 0.4 * sizes.sum()
    assert sizes[: len(sizes) // 2].sum() < 0.15 * sizes.sum()
    held = np.bincount(block.before.ravel(), np.repeat(block.weights[:, BYTES], 3), len(brokers))
    assert all(held < brokers.disk)


def test_new_brokers_hold_nothing() -> None:
    counts = replicas_by_broker(ClusterShape(10, 5, 20, 500, placement=Placement.UNIFORM, new_brokers=3))
    assert len(counts) == 13
    assert (counts > 0).tolist() == [True] * 10 + [False] * 3


def test_rows_have_ids_and_the_first_replica_leading() -> None:
    cluster = GeneratedCluster(ClusterShape(5, 0, 2, 20, placement=Placement.UNIFORM))
    block = cluster.block(0)
    row = rows_of(block, cluster.brokers).to_pylist()[7]
    assert row["topic"] == block.topics[block.topic[7]]
    assert row["replicas"] == [index + 1 for index in block.before[7]]
    assert row["leader"] == row["replicas"][0]
    assert [row["bytes"], row["bytes_in"]] == block.weights[7, 1:].tolist()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"brokers": 2}, r"^2 brokers cannot hold 3 replicas of a partition: give more brokers or a lower factor$"),
        ({"partitions": 10}, r"^partitions must be 3000 or more, one for each topic, not 10$"),
        ({"replication_factor": 0}, r"^replication factor must be 1 or more, not 0$"),
    ],
)
def test_what_is_no_cluster_is_refused(changes: dict[str, int], line: str) -> None:
    with pytest.raises(PlanError, match=line):
        evolve(shape_named("uniform"), **changes)  # type: ignore[arg-type] # whole numbers all


def test_an_unknown_shape_is_told_with_those_there_are() -> None:
    with pytest.raises(PlanError, match=r"^there is no shape 'tall': choose from uniform, linear,"):
        shape_named("tall")
