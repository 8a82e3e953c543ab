"""The pages of controllers during a failover; real ZooKeeper, processes and sockets."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from klamm.cli.demo.scenario import ORDERS
from tests.cluster.running import CONTROLLER, FIRST, SECOND, RealCluster
from tests.cluster.waiting import until
from tests.kit.scrape import get, scrape
from transport.errors import ErrorCode
from transport.metadata import NO_LEADER

ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"
OFFLINE = "kafka_controller_kafkacontroller_offlinepartitionscount"
UNDER_REPLICATED = "klamm_under_replicated_partitions"


def state_log(data_dir: Path, controller_id: int) -> Path:
    return data_dir / f"{controller_id}-state-change.log"


def pages(data_dir: Path, id_: int) -> tuple[str, ...]:
    """Return the words that start a controller with pages and a log of its state changes."""
    return (*CONTROLLER, "--metrics-port", "0", "--state-change-log", str(state_log(data_dir, id_)))


async def metrics_port(data_dir: Path, controller_id: int) -> int:
    found: list[int] = []

    async def is_told() -> bool:
        said = re.search(r"http://127.0.0.1:(\d+)/metrics", (data_dir / f"{controller_id}.log").read_text())
        found.extend([int(said.group(1))] if said else [])
        return bool(found)

    await until(is_told)
    return found[0]


def shows(port: int, **values: float) -> Callable[[], Awaitable[bool]]:
    async def does() -> bool:
        page = await scrape(port)
        return all(page[name] == value for name, value in values.items())

    return does


def is_ready(port: int, answer: tuple[int, str]) -> Callable[[], Awaitable[bool]]:
    async def is_() -> bool:
        return await get(port, "/readyz") == answer

    return is_


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.requirement("A10", "D3", "D11", "E1")
async def test_pages_and_ids_follow_the_cluster_through_a_failover(zookeeper: str, tmp_path: Path) -> None:
    async with RealCluster.running(f"{zookeeper}/monitoring", tmp_path, *pages(tmp_path, FIRST)) as cluster:
        cluster.start(SECOND, *pages(tmp_path, SECOND))
        first, second = await metrics_port(tmp_path, FIRST), await metrics_port(tmp_path, SECOND)
        await until(is_ready(first, (200, "active\n")))
        await until(is_ready(second, (200, f"standing by for controller {FIRST}\n")))
        cluster.start_brokers((1, 2, 3))
        await until(shows(first, kafka_controller_kafkacontroller_activebrokercount=3))
        await cluster.create_topic(ORDERS.topic, (1, 2))
        await until(shows(first, **{ACTIVE: 1, OFFLINE: 0, UNDER_REPLICATED: 0}))
        assert (await scrape(second))[ACTIVE] == 0

        await cluster.kill(1)
        await until(shows(first, **{UNDER_REPLICATED: 1, OFFLINE: 0}))
        # One id leads from the partition's leader to the cause.
        change = [line for line in lines(state_log(tmp_path, FIRST)) if line["change"] == "leadership"][-1]
        assert (change["partition"], change["leader_before"], change["leader"]) == ("orders-0", 1, 2)
        [cause] = re.findall(rf".*changed event_id={change['event_id']} .*", cluster.log(FIRST))
        assert "during=BrokerChange" in cause
        assert "brokers_gone=[1]" in cause

        await cluster.kill(FIRST)
        await until(is_ready(second, (200, "active\n")))
        await until(shows(second, **{ACTIVE: 1, UNDER_REPLICATED: 1, "klamm_controller_epoch": 2}))
        assert (await cluster.reassign((3,))).error is ErrorCode.NONE

        async def has_moved() -> bool:
            return [state.replicas for state in await cluster.states()] == [(3,)]

        await until(has_moved)
        await cluster.kill(3)
        await until(shows(second, **{OFFLINE: 1}))
        [state] = await cluster.states()
        assert (state.replicas, state.leader, state.isr) == ((3,), NO_LEADER, (3,))
        page = await scrape(second)
        assert page['klamm_partition_available{partition="0",reason="offline",topic="orders"}'] == 0
        assert page["kafka_controller_controllerstats_leaderelectionrateandtimems_count"] >= 1
        assert page["kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_count"] > 10
