"""Controllers of ours that kill themselves after a step of a move of real brokers' replicas; the next one goes on."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio

from controller.admin.active_controller import OutcomeUnknown
from tests.kafka.expectations import require_all_read, require_standbys
from tests.kafka.real_cluster import FIRST, RealCluster, Starting, real_cluster, until
from tests.kafka.real_controllers import RUN
from tests.kafka.traffic import until_more, writing
from transport.store.kafka_office import read_office
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper

STEPS = {
    "U1": "commit",
    "ISR": "publish",
    "B3": "commit",
    "B4": "publish",
    "B6": "commit",
}
"""The rounds of a move, and whether a controller dies after the commit of one or after its orders to the brokers."""

MORE = 100
LOOK_SECONDS = 0.01


@pytest.mark.soak
async def test_a_move_goes_on_when_its_controller_dies(zookeeper: str, tmp_path: Path, release: str) -> None:
    rounds = tuple(STEPS)
    address = f"{zookeeper}/crashes-{tmp_path.name}"
    running = real_cluster(address, tmp_path, release=release, starting=Starting(dying_after(rounds[0])))
    async with running as cluster, watched_office(address) as holders:
        await cluster.create("orders", partitions=3)
        async with writing(cluster.bootstrap, "orders") as orders:
            for number, round_ in enumerate(rounds):
                following = rounds[number + 1 : number + 2]
                await crash(cluster, FIRST + number, round_, dying_after(*following) if following else RUN)
            await until_more(orders, MORE)
        await require_all_read(cluster, "orders", orders)
        require_standbys(cluster)
        sys.stdout.write(f"/controller was held by {', '.join(holders)}\n")
        assert holders == [f"Klamm's {FIRST + number}" for number in range(len(rounds) + 1)]
        # Every election raises it.
        assert await epoch_of(address) == len(holders)


def topic_of(round_: str) -> str:
    return f"moved-{round_}"


def dying_after(round_: str) -> Sequence[str]:
    """Return the program of a controller that dies after a round of the move of that round's topic."""
    return ("tests.cluster.dying_controller", "--topic", topic_of(round_), "--after", round_, STEPS[round_])


async def crash(cluster: RealCluster, first: int, round_: str, successor: Sequence[str]) -> None:
    """Move a partition while it is written to: the controller in office dies, and its successor ends the move."""
    topic = topic_of(round_)
    await cluster.create(topic, (1, 2))
    cluster.controllers.start(first + 1, successor)
    async with writing(cluster.bootstrap, topic) as moved:
        # The answer is lost if the controller dies before it has sent it.
        with suppress(OutcomeUnknown):
            await cluster.begin_move(topic, 2, 3)
        await until(lambda: is_dead(cluster, first))
        await cluster.until_moved(topic)
        await cluster.until_without_logs(topic, 1)
        await cluster.until_in_sync(topic)
    state = await cluster.state(topic)
    assert (state.replicas, state.leader, set(state.isr)) == ((2, 3), 2, {2, 3})
    await require_all_read(cluster, topic, moved)


async def is_dead(cluster: RealCluster, controller_id: int) -> bool:
    code = cluster.controllers.processes[controller_id].poll()
    assert code in {None, -signal.SIGKILL}
    return code is not None


async def epoch_of(address: str) -> int | None:
    async with open_zookeeper(address) as store:
        return (await read_office(store)).epoch


@asynccontextmanager
async def watched_office(address: str) -> AsyncIterator[list[str]]:
    """Record whom `/controller` names until the end of the block, and when it is missing."""
    holders: list[str] = []
    async with open_zookeeper(address) as store, trio.open_nursery() as nursery:
        nursery.start_soon(watch_office, store, holders)
        yield holders
        nursery.cancel_scope.cancel()


async def watch_office(store: MetadataStore, holders: list[str]) -> None:
    while True:
        holder = (await read_office(store)).holder
        now = "nobody" if holder is None else f"{holder.writer.value}'s {holder.controller_id}"
        if holders[-1:] != [now]:
            holders.append(now)
        await trio.sleep(LOOK_SECONDS)
