"""A cluster in an asyncio program."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
import trio

from klamm.testing import AsyncioCluster, NotInTime, Violation, open_asyncio_cluster
from transport.errors import ApiError

PROGRAM = """
from tests.testing.test_asyncio_cluster import history
print(history({seed}))
"""


def history(seed: int) -> str:
    """Move a partition while a broker dies and two tasks produce; return the digest of the trace."""

    async def produce(c: AsyncioCluster, count: int) -> None:
        for _ in range(count):
            await c.produce("orders-0", [b"paid"])

    async def main() -> str:
        async with open_asyncio_cluster(brokers=5, seed=seed) as c:
            await c.create_topic("orders", [(1, 2, 3)])
            await asyncio.gather(c.reassign({"orders-0": (4, 5)}), produce(c, 3), produce(c, 5))
            c.crash(1)
            await c.until_moved("orders-0")
            await c.settle()
            return c.cluster.trace.digest

    return asyncio.run(main())


@pytest.mark.requirement("E4")
def test_a_seed_replays_in_another_process() -> None:
    def elsewhere(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", PROGRAM.format(seed=7)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.split()[-1]

    assert elsewhere("1") == elsewhere("2") == history(7) != history(8)


def test_time_stands_still_while_nobody_awaits_the_cluster() -> None:
    async def main() -> None:
        async with open_asyncio_cluster(brokers=1) as c:
            before = trio.current_time(), c.cluster.trace.length
            for _ in range(100):
                await asyncio.sleep(0)
            assert before == (trio.current_time(), c.cluster.trace.length)
            await c.sleep(3600)
            assert trio.current_time() == pytest.approx(before[0] + 3600)

    asyncio.run(main())


def test_cancelling_a_call_ends_it_in_the_cluster_too() -> None:
    ended: list[float] = []

    async def wait_for_ever() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())

    async def main() -> None:
        async with open_asyncio_cluster(brokers=1) as c:
            task = asyncio.create_task(c.call(wait_for_ever))
            await c.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(ended) == 1
            await c.create_topic("orders")

    asyncio.run(main())


def test_a_violation_ends_every_call_and_the_block() -> None:
    async def main() -> None:
        async with open_asyncio_cluster(brokers=1, seed=5) as c:
            other = asyncio.create_task(c.sleep(100))
            await c.sleep(1)
            c.cluster.world.safety.report("a rule", "is broken")
            with pytest.raises(Violation):
                await other
            await c.sleep(1)

    with pytest.raises(Violation, match="a rule: is broken") as raised:
        asyncio.run(main())
    [note] = raised.value.__notes__
    assert "the seed 5" in note


def test_what_a_call_raises_is_raised_as_it_is() -> None:
    async def main() -> None:
        async with open_asyncio_cluster(brokers=1) as c:
            with pytest.raises(ApiError):
                await c.create_topic("orders", [(1, 2)])
            with pytest.raises(NotInTime):
                await c.until(lambda: False, within=1)

    asyncio.run(main())


def test_one_cluster_after_another_in_one_event_loop() -> None:
    async def main() -> set[str]:
        digests = set()
        for _ in range(2):
            async with open_asyncio_cluster(brokers=2) as c:
                digests.add(c.cluster.trace.digest)
        return digests

    assert len(asyncio.run(main())) == 1


def test_what_cannot_be_opened_leaves_room_for_another() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="'broker'"):
            async with open_asyncio_cluster(broker=1):
                pass
        async with open_asyncio_cluster(brokers=1):
            pass

    asyncio.run(main())
