"""`klamm reassignment` while Kafka's own controller, played by a script, is active, on a real ZooKeeper."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import orjson
import pytest
import trio

from tests.cluster.waiting import until
from tests.kit.kafka_controller import KafkaController
from transport.child_process import spawn
from transport.store import paths
from transport.store.zookeeper import open_zookeeper

BROKERS = (1, 2, 3, 4, 5, 6)
TARGET = [4, 5, 6]
REQUEST = b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[4,5,6]}]}'


class KafkaEstate:
    """An operator's means: the address of ZooKeeper, and the command."""

    def __init__(self, address: str, data_dir: Path, controller: KafkaController) -> None:
        self.address = address
        self.data_dir = data_dir
        self.controller = controller
        self.store = controller.store
        self.file = data_dir / "move.json"
        self.file.write_bytes(REQUEST)
        self.spawned: list[subprocess.Popen[bytes]] = []

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "klamm", "reassignment", *arguments, "--zookeeper", self.address]

    async def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        run = partial(subprocess.run, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"})
        return await trio.to_thread.run_sync(partial(run, self.command(*arguments)))

    def spawn(self, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
        self.spawned.append(spawn(self.command(*arguments), log))
        return self.spawned[-1]

    def stop(self) -> None:
        for process in self.spawned:
            process.kill()
            process.wait()

    async def listed(self) -> list[dict[str, object]]:
        listed: list[dict[str, object]] = orjson.loads((await self.run("list", "-o", "json")).stdout)
        return listed


@asynccontextmanager
async def kafka_estate(address: str, data_dir: Path, version: int) -> AsyncIterator[KafkaEstate]:
    async with open_zookeeper(address) as store, trio.open_nursery() as nursery:
        controller = KafkaController(store, version)
        await controller.start(BROKERS, {"0": [1, 2, 3], "1": [1, 2, 3]})
        await nursery.start(controller.run)
        estate = KafkaEstate(address, data_dir, controller)
        try:
            yield estate
        finally:
            estate.stop()
            nursery.cancel_scope.cancel()


@pytest.mark.requirement("A1", "A2")
@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.soak), 3])
async def test_kafka_carries_out_what_klamm_asks_for(zookeeper: str, tmp_path: Path, version: int) -> None:
    async with kafka_estate(f"{zookeeper}/kafka-{version}", tmp_path, version) as kafka:
        log = tmp_path / "execute.log"
        executing = kafka.spawn(log, "execute", "--reassignment-json-file", str(kafka.file))

        async def is_under_way() -> bool:
            return bool(kafka.controller.adding)

        await until(is_under_way)
        assert kafka.controller.requests == [REQUEST]
        [move] = await kafka.listed()
        assert (move["adding_replicas"], move["removing_replicas"], move["isr"]) == (TARGET, [1, 2, 3], [1, 2, 3])
        second = await kafka.run("execute", "--reassignment-json-file", str(kafka.file))
        assert second.returncode == 1
        assert "is being moved already" in second.stderr

        other = tmp_path / "other.json"
        other.write_bytes(REQUEST.replace(b'"partition":0', b'"partition":1'))
        second = await kafka.run("execute", "--reassignment-json-file", str(other))
        assert second.returncode == 1
        assert "Kafka's controller takes one request at a time" in second.stderr
        assert "in progress" in (await kafka.run("verify", "--reassignment-json-file", str(kafka.file))).stdout

        kafka.controller.may_catch_up.set()
        assert await trio.to_thread.run_sync(executing.wait) == 0
        assert "orders-0: complete" in log.read_text()
        verified = await kafka.run("verify", "--reassignment-json-file", str(kafka.file))
        assert (verified.returncode, verified.stdout) == (0, "orders-0: complete\n")
        assert await kafka.listed() == []
        assert await kafka.store.read([paths.REASSIGN_PARTITIONS]) == [None]
