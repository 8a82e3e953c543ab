"""Clusters with mostly empty partitions: replicas without bytes find brokers, whatever these carry."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from spark_bridge.model.block import REPLICAS, Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.rules import violations
from tests.spark.kernel.small import load_of
from tests.spark.planned import plan_blocks

GB = 10**9


def block_of_topics(topics: Mapping[str, tuple[int, int]], brokers: int, factor: int = 3) -> Block:
    """Return topics of so many partitions of so many bytes, whose replicas go round the brokers."""
    names, lists, sizes = [], [], []
    for topic, (count, size) in topics.items():
        for number in range(count):
            names.append((topic, number))
            lists.append([(number + place) % brokers for place in range(factor)])
            sizes.append(size)
    none = [0] * len(names)
    return Block.of(names, lists, sizes, none, none)


def beside_big(count: int, size: int, on: list[int]) -> Block:
    """Return many partitions that go round six brokers, of which some are full of bytes, and stay so with any more."""
    light = block_of_topics({"empty": (count, size)}, 6)
    big = [[on[(number + place) % len(on)] for place in range(3)] for number in range(12)]
    names = [*(("empty", number) for number in range(count)), *(("big", number) for number in range(12))]
    none = [0] * len(names)
    return Block.of(names, [*light.before.tolist(), *big], [size] * count + [GB] * 12, none, none)


def planned(block: Block, brokers: Brokers, goal: Goal) -> NDArray[np.int64]:
    """Plan, and return what brokers carry then; the plan breaks no rule."""
    (done,) = plan_blocks([block], brokers, goal).blocks
    assert violations(done, brokers, goal) == []
    return load_of([done], brokers)


@pytest.mark.parametrize("gone", [{0}, {0, 3}], ids=len)
@pytest.mark.parametrize("brokers", [6, 40])
@pytest.mark.parametrize(
    "topics",
    [
        {"big": (12, GB), "empty": (600, 0)},
        {"big": (300, GB), "empty": (3_000, 0)},
        {"big": (1, GB), "empty": (600, 0)},
        {"empty": (600, 0)},
        {"large": (5, 70 * GB), "big": (40, GB), "small": (40, 1_000), "empty": (2_000, 0)},
    ],
    ids=lambda topics: "-".join(f"{count}_{name}" for name, (count, _) in topics.items()),
)
def test_brokers_are_emptied(topics: dict[str, tuple[int, int]], brokers: int, gone: set[int]) -> None:
    goal = Goal(GoalKind.REMOVE_BROKERS, frozenset(gone))
    load = planned(block_of_topics(topics, brokers), Brokers.of(map(Broker, range(brokers))), goal)
    assert not load[sorted(gone)].any()
    left = np.delete(load, sorted(gone), axis=0)
    assert left[:, REPLICAS].sum() == 3 * sum(count for count, _ in topics.values())


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("on", [[1, 2, 3], [1, 2, 3, 4]], ids=len)
def test_what_weighs_nothing_evens_out_replicas(on: list[int], size: int) -> None:
    # More partitions than are planned in one step.
    block = beside_big(6_000, size, on)
    brokers = Brokers.of(map(Broker, range(6)))
    load = planned(block, brokers, Goal(GoalKind.REMOVE_BROKERS, frozenset({0})))
    assert np.ptp(load[1:, REPLICAS]) <= 0.01 * load[1:, REPLICAS].mean()


@pytest.mark.parametrize("count", [600, 6_000])
@pytest.mark.parametrize(("factor", "each"), [(2, 2), (4, 4)])
def test_another_replication_factor_takes_from_all_and_gives_to_all(count: int, factor: int, each: int) -> None:
    block = beside_big(count, 0, [1, 2, 3])
    goal = Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=factor, topics=("empty",))
    load = planned(block, Brokers.of(map(Broker, range(6))), goal)
    assert load[:, REPLICAS].sum() == each * count + 3 * 12
    assert np.ptp(load[:, REPLICAS]) <= 0.01 * load[:, REPLICAS].mean() + 1


@pytest.mark.parametrize("racks", [0, 3, 4])
@pytest.mark.parametrize("wanted", [4, 5])
@pytest.mark.parametrize("known", [("size",), ("bytes_in",), ("size", "bytes_in"), ()], ids="-".join)
def test_more_replicas_of_empty_partitions_go_to_all_though_some_disks_are_full(
    known: tuple[str, ...], wanted: int, racks: int
) -> None:
    # Six of twelve brokers have all the data, more of it than their disks hold.
    rows = [(topic, n) for topic, count in (("data", 100), ("empty", 2_000)) for n in range(count)]
    lists = [[(n + place) % (6 if topic == "data" else 12) for place in range(3)] for topic, n in rows]
    weight = [(1 + 7 * n % 50) * 10**6 if topic == "data" else 0 for topic, n in rows]
    none = [0] * len(rows)
    size, bytes_in = (weight if name in known else none for name in ("size", "bytes_in"))
    block = Block.of(rows, lists, size, bytes_in, none)
    disk = int(1.9 * 3 * sum(weight) / 12)
    brokers = Brokers.of(Broker(n, f"rack-{n % racks}" if racks else None, disk=disk) for n in range(12))
    goal = Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=wanted, topics=("empty",))
    load = planned(block, brokers, goal)
    assert load[:, REPLICAS].sum() == wanted * 2_000 + 300
    assert np.ptp(load[:, REPLICAS]) <= 0.05 * load[:, REPLICAS].mean()
