"""Random faults in a test: drawn from the seed, without any that may lose data by permission."""

from __future__ import annotations

from trio.testing import MockClock

from klamm.testing import ClusterFactory, failing_seeds, open_cluster, random_faults
from klamm.testing.random_faults import HARMLESS
from simulator.random_run.features import FEATURES
from simulator.trace import Trace


def test_what_may_be_drawn_exists() -> None:
    assert set(HARMLESS) <= {feature.name for feature in FEATURES}


async def faults_of(seed: int, seconds: float = 5.0, **features: tuple[str, ...]) -> tuple[str, ...]:
    trace = Trace(keep_all=True)
    async with open_cluster(seed=seed, trace=trace, brokers=4) as c:
        await c.create_topic("orders", [(1, 2, 3)])
        done = await random_faults(c, seconds=seconds, **features)
        await c.settle()
    traced = [entry.what for entry in trace.entries if entry.kind == "random"]
    assert traced == [line.partition(" s: ")[2] for line in done]
    return done


async def test_a_seed_decides_what_happens(autojump_clock: MockClock) -> None:  # noqa: ARG001
    first, again, other = [await faults_of(seed) for seed in (3, 3, 5)]
    assert first == again != other
    assert all(" s: " in line for line in (*first, *other))


async def test_no_election_is_unclean(autojump_clock: MockClock) -> None:  # noqa: ARG001
    done = [line for seed in range(4) for line in await faults_of(seed, features=("elections",))]
    assert any("elect" in line for line in done)
    assert not [line for line in done if "unclean" in line]


def test_the_seeds_that_fail_are_yielded_with_their_errors() -> None:
    async def fails_for_odd_seeds(cluster: ClusterFactory) -> None:
        async with cluster(brokers=1) as c:
            assert c.world.seed % 2 == 0, "it is odd"

    assert [(seed, text.splitlines()[0]) for seed, text in failing_seeds(fails_for_odd_seeds, range(4))] == [
        (1, "AssertionError: it is odd"),
        (3, "AssertionError: it is odd"),
    ]
