"""Properties of every plan, whatever the cluster and the goal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from random import Random

import pytest
from attrs import evolve
from hypothesis import assume, given, strategies as st

from spark_bridge.errors import PlanError
from spark_bridge.kernel import polish
from spark_bridge.model.block import NOBODY, Block, name_hash
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from tests.kit.examples import examples
from tests.spark.kernel.instances import Instance
from tests.spark.kernel.verdict import PlannerResult, checked
from tests.spark.planned import plan_blocks

LIVE, EXCLUDED, DRAINING, DEAD = BrokerState
FEW_STEPS = 300
"""Of annealing: these plans need not be the best."""

NAMING = (GoalKind.ADD_BROKERS, GoalKind.REMOVE_BROKERS, GoalKind.RELIEVE)

RACKS: tuple[tuple[str | None, ...], ...] = ((None,), ("a", "b"), ("a", "b", "c"), (None, "a", "b"))

Lists = dict[tuple[str, int], list[int]]


@pytest.fixture(scope="module", autouse=True)
def short_annealing() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polish, "_MOST_STEPS", FEW_STEPS)
        yield


@st.composite
def brokers(draw: st.DrawFn) -> list[Broker]:
    """Draw brokers 0, 1, 2 ..., at least three of them live."""
    states = [LIVE] * 3 + draw(st.lists(st.sampled_from([LIVE, LIVE, *BrokerState]), max_size=5))
    racks = st.sampled_from(draw(st.sampled_from(RACKS)))
    disks = st.sampled_from([None, None, None, 4_000])
    return [
        Broker(n, draw(racks), draw(st.sampled_from([1.0, 1.0, 2.0])), draw(disks), s) for n, s in enumerate(states)
    ]


@st.composite
def goals(draw: st.DrawFn, rows: Sequence[Broker]) -> Goal:
    """Draw a goal that names live brokers, and leaves some to go to."""
    kind = draw(st.sampled_from(GoalKind))
    live = [b.id for b in rows if b.state is LIVE]
    named = draw(st.sets(st.sampled_from(live), min_size=1, max_size=len(live) - 1)) if kind in NAMING else set[int]()
    factor = draw(st.integers(1, 3)) if kind is GoalKind.SET_REPLICATION_FACTOR else None
    return Goal(
        kind,
        frozenset(named),
        replication_factor=factor,
        tolerance=draw(st.sampled_from([0.05, 0.2])),
        racks=draw(st.booleans()),
        force=True,
        dead_is_gone=draw(st.booleans()),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Instance:
    """Draw a cluster and a goal."""
    rows = draw(brokers())
    ids = st.sampled_from([b.id for b in rows])
    replicas = draw(st.lists(st.lists(ids, min_size=1, max_size=3, unique=True), min_size=1, max_size=30))
    amounts = st.lists(st.integers(0, 1_000), min_size=len(replicas), max_size=len(replicas))
    return Instance(
        seed=0,
        kind="any",
        names=tuple((f"topic-{n % 3}", n) for n in range(len(replicas))),
        replicas=tuple(map(tuple, replicas)),
        size=tuple(draw(amounts)),
        bytes_in=tuple(draw(amounts)),
        brokers=Brokers.of(rows),
        goal=draw(goals(rows)),
    )


def planned(cluster: Instance, blocks: Sequence[Block] | None = None) -> PlannerResult:
    """Return the plan; a cluster that has none is left out."""
    try:
        return plan_blocks(blocks or [cluster.block()], cluster.brokers, cluster.goal)
    except PlanError:
        assume(False)  # noqa: FBT003 (hypothesis has it so)
        raise


def lists_of(blocks: Sequence[Block]) -> Lists:
    """Return the planned list of every partition."""
    return {
        (block.topics[topic], int(partition)): [int(b) for b in after if b != NOBODY]
        for block in blocks
        for topic, partition, after in zip(block.topic, block.partition, block.after, strict=True)
    }


def dealt(cluster: Instance, count: int) -> list[Block]:
    """Return a cluster as up to so many blocks, by the hash of names."""
    numbers = [name_hash(*name) % count for name in cluster.names]
    masks = [[number == n for number in numbers] for n in sorted(set(numbers))]
    return [_part(cluster, mask).block() for mask in masks]


def _part(cluster: Instance, mask: Sequence[bool]) -> Instance:
    return evolve(
        cluster,
        names=tuple(compress(cluster.names, mask)),
        replicas=tuple(compress(cluster.replicas, mask)),
        size=tuple(compress(cluster.size, mask)),
        bytes_in=tuple(compress(cluster.bytes_in, mask)),
    )


@examples(25)
@given(clusters())
def test_every_plan_keeps_the_hard_rules(cluster: Instance) -> None:
    checked(cluster, planned(cluster))


@examples(20)
@given(clusters(), st.integers(2, 5))
def test_every_plan_of_several_blocks_keeps_the_hard_rules(cluster: Instance, count: int) -> None:
    checked(cluster, planned(cluster, dealt(cluster, count)))


@examples(15)
@given(clusters(), st.integers(1, 3))
def test_planning_again_changes_nothing(cluster: Instance, count: int) -> None:
    once = planned(cluster, dealt(cluster, count))
    again = planned(cluster, [evolve(block, before=block.after) for block in once.blocks])
    assert lists_of(again.blocks) == lists_of(once.blocks)


@examples(12)
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(cluster: Instance, rng: Random) -> None:
    order = rng.sample(range(len(cluster.names)), len(cluster.names))
    assert lists_of(planned(cluster, [cluster.block(order)]).blocks) == lists_of(planned(cluster).blocks)


@examples(12)
@given(clusters(), st.integers(1, 3))
def test_the_same_cluster_has_the_same_plan_each_time(cluster: Instance, count: int) -> None:
    first, second = (planned(cluster, dealt(cluster, count)) for _ in range(2))
    assert lists_of(first.blocks) == lists_of(second.blocks)
