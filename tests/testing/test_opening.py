"""A cluster in a trio test: a seed decides its course, violations end it, exceptions pass through unchanged."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from klamm.testing import Violation, open_cluster
from transport.errors import ApiError, ErrorCode


async def history(seed: int) -> str:
    async with open_cluster(brokers=3, seed=seed) as c:
        await c.create_topic("orders", [(1, 2, 3)])
        await c.produce("orders-0", [b"paid"])
        return c.trace.digest


def test_a_seed_replays_and_another_one_does_something_else() -> None:
    digests = [trio.run(history, seed, clock=MockClock(autojump_threshold=0)) for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


async def test_a_violation_ends_the_block_where_it_is(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async def violate() -> None:
        async with open_cluster(brokers=1, seed=5) as c:
            c.world.safety.report("a rule", "is broken")
            await trio.sleep_forever()

    with pytest.raises(Violation, match="a rule: is broken") as raised:
        await violate()
    [note] = raised.value.__notes__
    assert "the seed 5" in note
    assert note.splitlines()[-1].split()[1:] == ["violation", "a", "rule:", "is", "broken"]


async def test_an_exception_of_the_block_is_raised_as_it_is(autojump_clock: MockClock) -> None:  # noqa: ARG001
    with pytest.raises(ApiError) as raised:
        async with open_cluster(brokers=1) as c:
            await c.create_topic("orders", [(1, 2)])
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    [note] = raised.value.__notes__
    assert not note.endswith("crashes")  # crashes belong to the teardown, not to the trace


async def test_a_setting_that_is_none_is_refused(autojump_clock: MockClock) -> None:  # noqa: ARG001
    with pytest.raises(TypeError, match="'broker'"):
        async with open_cluster(broker=1):
            pass


async def test_real_time_is_refused_with_the_cure() -> None:
    with pytest.raises(RuntimeError, match="use the fixture `cluster`"):
        async with open_cluster():
            pass
