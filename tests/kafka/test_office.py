"""The office of a cluster of real brokers: who keeps it, who stays away, and who takes it when nobody of ours lives."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

import pytest
import trio

from tests.kafka.expectations import elections, require_all_read
from tests.kafka.real_cluster import FIRST, RealCluster, until
from tests.kafka.states import is_gone, stands_by, states_of, until_in_sync
from tests.kafka.traffic import until_more, writing
from transport.metadata import NO_LEADER
from transport.store import paths
from transport.store.kafka_office import read_office
from transport.store.protocol import Delete, MetadataStore
from transport.store.zookeeper import open_zookeeper

SECOND: Final = 1002
THIRD: Final = 1003
QUIET_SECONDS: Final = 60
RECORDS_AFTER: Final = 100

pytestmark = pytest.mark.soak


@pytest.fixture
async def store(cluster: RealCluster) -> AsyncIterator[MetadataStore]:
    async with open_zookeeper(cluster.zookeeper) as opened:
        yield opened


async def test_after_a_release_our_standbys_stay_away(cluster: RealCluster, store: MetadataStore) -> None:
    for standby in (SECOND, THIRD):
        cluster.controllers.start(standby)
    await cluster.create("orders", partitions=3)
    async with writing(cluster.bootstrap, "orders") as orders:
        await cluster.hand_over("release")
        released = await read_office(store)

        async def has_changed() -> bool:
            return await read_office(store) != released

        with trio.move_on_after(QUIET_SECONDS) as quiet:
            await until(has_changed)
        assert quiet.cancelled_caught, await read_office(store)
        for controller_id in (FIRST, SECOND, THIRD):
            assert cluster.controllers.processes[controller_id].poll() is None
            assert await stands_by(cluster, controller_id, store, "the office was released")
        await until_more(orders, RECORDS_AFTER)
    sys.stdout.write(f"epoch {released.epoch} for {QUIET_SECONDS} s after the release, three of ours standing by\n")
    await require_all_read(cluster, "orders", orders)


@pytest.mark.parametrize(
    ("is_by_hand", "reason"), [(False, "the office was released"), (True, "the office is left to Kafka's brokers")]
)
async def test_when_all_of_ours_are_killed_a_release_restores_elections(
    cluster: RealCluster, store: MetadataStore, is_by_hand: bool, reason: str
) -> None:
    cluster.controllers.start(SECOND)
    await cluster.create("orders", partitions=3)
    await until(lambda: stands_by(cluster, SECOND, store, ""))
    async with writing(cluster.bootstrap, "orders") as orders:
        for controller_id in (SECOND, FIRST):
            cluster.controllers.kill(controller_id)
        dead = (await states_of(store, "orders"))[0].leader
        cluster.brokers[dead].kill()
        for path in (paths.broker(dead), paths.OFFICE_LOCK):
            await until(partial(is_gone, store, path))
        assert (await states_of(store, "orders"))[0].leader == dead, "nobody elects"
        assert elections(cluster) == 0
        since = trio.current_time()
        if is_by_hand:
            await store.multi([Delete(paths.CONTROLLER)])
        else:
            await cluster.hand_over("release")
        await until(lambda: is_led_by_another(store, dead))
        seconds = trio.current_time() - since
        assert elections(cluster) == 1
        cluster.controllers.start(THIRD)
        await until(lambda: stands_by(cluster, THIRD, store, reason))
        await cluster.brokers[dead].start()
        await until_in_sync(store, "orders")
        await until_more(orders, RECORDS_AFTER)
    sys.stdout.write(f"nobody of ours alive: a broker elects leaders {seconds:.1f} s after the release\n")
    await require_all_read(cluster, "orders", orders)


async def is_led_by_another(store: MetadataStore, dead: int) -> bool:
    return (await states_of(store, "orders"))[0].leader not in (dead, NO_LEADER)
