"""A rolling restart in the order of docs/deployment.md loses no record and refuses none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import trio

from klamm.cli.demo.clusters import CONTROLLERS
from tests.cluster.running import CONTROLLER, RealCluster
from tests.cluster.waiting import PATIENCE_SECONDS, until
from tests.deployment.page import commands, typed

BROKERS: Final = (1, 2, 3)
WHOLE: Final = "no partition is under-replicated\n"


async def restart(cluster: RealCluster, id_: int) -> None:
    """Do what `systemctl restart` does."""
    process = cluster.processes.pop(id_)
    process.terminate()
    with trio.fail_after(PATIENCE_SECONDS):
        while process.poll() is None:
            await trio.sleep(0.05)
    if id_ in CONTROLLERS:
        cluster.start(id_, *CONTROLLER)
    else:
        cluster.start_brokers([id_])


async def until_whole(cluster: RealCluster, folder: Path) -> None:
    """Type what the page asks before the next restart until it prints what it should."""
    [check, _] = commands("Rolling upgrade")

    async def is_whole() -> bool:
        live = (await cluster.admin.read_metadata([])).brokers
        at = ",".join(f"{one.host}:{one.port}" for one in live)
        places = {"klamm1:9092,klamm2:9092,klamm3:9092": at}
        return len(live) == len(BROKERS) and await typed(check, places, folder) == WHOLE

    await until(is_whole)


@pytest.mark.soak
async def test_a_rolling_restart_loses_nothing(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/{tmp_path.name}"
    async with RealCluster.running(address, tmp_path, standby=True, brokers=BROKERS) as cluster:
        await cluster.create_topic("orders", (1, 2, 3))
        at = ",".join(f"{one.host}:{one.port}" for one in (await cluster.admin.read_metadata([])).brokers)
        command = [sys.executable, "-m", "klamm", "produce", "orders", "--timeout", "60", "--bootstrap-server", at]
        producer = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert producer.stdin is not None
        assert producer.stderr is not None
        sent = 0
        for id_ in (*CONTROLLERS, *BROKERS):
            for _ in range(20):
                await producer.stdin.send_all(f"record {sent}\n".encode())
                sent += 1
            await restart(cluster, id_)
            await until_whole(cluster, tmp_path)
        await producer.stdin.aclose()
        said = b"".join([part async for part in producer.stderr]).decode()
        assert (await producer.wait(), said) == (0, f"{sent} records acknowledged\n")
        at = ",".join(f"{one.host}:{one.port}" for one in (await cluster.admin.read_metadata([])).brokers)
        read = await typed(f"klamm consume orders --bootstrap-server {at}", {}, tmp_path)
        assert read.splitlines() == [f"record {number}" for number in range(sent)]
