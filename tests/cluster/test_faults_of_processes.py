"""Brokers, controllers and ZooKeeper that die, pause or return during a move; all of them real."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from klamm.cli.demo import scenario
from klamm.cli.demo.clusters import BROKERS, log_dir
from klamm.cli.demo.process_cluster import SESSION_TIMEOUT_MS
from klamm.cli.demo.scenario import ORDERS, ORIGIN, TARGET, DemoScene
from tests.cluster.running import FIRST, SECOND, RealCluster
from tests.cluster.waiting import has_stepped_down, orders, until, until_controller
from transport.store import paths
from transport.zookeeper_server import development_zookeeper


@asynccontextmanager
async def playing(address: str, data_dir: Path, *first: str) -> AsyncIterator[tuple[RealCluster, DemoScene]]:
    """Run a cluster whose first controller leads, and is run by `first` if that is given."""
    async with (
        RealCluster.running(address, data_dir, *first, standby=True, brokers=BROKERS) as cluster,
        trio.open_nursery() as nursery,
    ):
        yield cluster, await scenario.set_up(cluster, nursery)
        nursery.cancel_scope.cancel()


async def assert_nothing_is_lost(scene: DemoScene) -> None:
    outcome = await scenario.judge(scene)
    assert (outcome.faults, outcome.lost) == ([], 0)


@pytest.mark.requirement("A6", "D5")
async def test_a_removed_broker_that_was_dead_deletes_its_log_when_it_is_back(zookeeper: str, tmp_path: Path) -> None:
    async with playing(f"{zookeeper}/dead-in-rr", tmp_path) as (cluster, scene):

        async def kill_a_removing_broker(scene: DemoScene) -> None:
            await scenario.until_begun(scene)
            await cluster.kill(2)

        await scenario.move(scene, kill_a_removing_broker)
        assert log_dir(tmp_path, 2).joinpath(str(ORDERS)).exists()
        cluster.start_brokers([2])
        await assert_nothing_is_lost(scene)


@pytest.mark.soak
@pytest.mark.requirement("A8", "A9")
async def test_the_whole_target_dies_after_it_joined_the_isr(zookeeper: str, tmp_path: Path) -> None:
    dying = ("tests.cluster.dying_controller", "--after", "ISR", "commit")
    async with playing(f"{zookeeper}/dead-target", tmp_path, *dying) as (cluster, scene):

        async def kill_the_target(_: DemoScene) -> None:
            await until(first_is_dead)
            for broker_id in TARGET:
                await cluster.kill(broker_id)
            await until(origin_leads_alone)
            assert all((log_dir(tmp_path, broker_id) / str(ORDERS)).exists() for broker_id in ORIGIN)
            cluster.start_brokers(TARGET)

        async def first_is_dead() -> bool:
            return cluster.processes[FIRST].poll() is not None

        async def origin_leads_alone() -> bool:
            state = await orders(scene)
            return state.leader in ORIGIN and set(state.isr) <= set(ORIGIN)

        await scenario.move(scene, kill_the_target)
        await assert_nothing_is_lost(scene)


@pytest.mark.soak
@pytest.mark.requirement("A8", "D1", "D7")
async def test_zookeeper_stops_for_longer_than_the_sessions(zookeeper: str, tmp_path: Path) -> None:
    assert zookeeper, "this test pauses a ZooKeeper of its own: the fixture tells that there is a Java to run it"
    async with (
        development_zookeeper(tmp_path / "zookeeper") as server,
        playing(server.address, tmp_path) as (_, scene),
    ):

        async def pause_zookeeper(scene: DemoScene) -> None:
            await scenario.until_begun(scene)
            os.kill(server.pid, signal.SIGSTOP)
            # Nothing tells when a session's time is over while its server stands still.
            await trio.sleep(2 * SESSION_TIMEOUT_MS / 1000)
            os.kill(server.pid, signal.SIGCONT)

        await scenario.move(scene, pause_zookeeper)
        await assert_nothing_is_lost(scene)


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(
    ("round_", "moment"),
    [
        ("U1", "commit"),
        pytest.param("ISR", "publish", marks=pytest.mark.soak),
        pytest.param("B4", "commit", marks=pytest.mark.soak),
    ],
)
async def test_a_controller_that_was_paused_gets_no_write_in(
    zookeeper: str, tmp_path: Path, round_: str, moment: str
) -> None:
    pausing = ("tests.cluster.dying_controller", "--after", round_, moment, "--signal", "SIGSTOP")
    async with playing(f"{zookeeper}/paused-{round_}", tmp_path, *pausing) as (cluster, scene):
        await scenario.move(scene)
        await until_controller(scene.cluster.store, SECOND)
        znodes = [paths.topic(ORDERS.topic), paths.partition_state(ORDERS), paths.CONTROLLER_EPOCH]
        before = await scene.cluster.store.read(znodes)
        cluster.processes[FIRST].send_signal(signal.SIGCONT)
        await until(lambda: has_stepped_down(scene.controllers[FIRST]))
        assert await scene.cluster.store.read(znodes) == before
        assert cluster.processes[FIRST].poll() is None
        await assert_nothing_is_lost(scene)
