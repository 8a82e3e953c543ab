"""docs/kafka.md: its commands, one after the other, take an operator to Klamm's controller and back, as shown."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import define, field

from tests.kafka import jars
from tests.kafka.moves import addresses_of
from tests.kafka.real_brokers import kill
from tests.kafka.real_cluster import FIRST, RealCluster, real_cluster, until
from tests.kafka.states import is_gone
from tests.kafka.traffic import create_topic
from transport.child_process import spawn
from transport.store import paths
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import HOST, find_java

PAGE: Final = (Path(__file__).parents[2] / "docs" / "kafka.md").read_text(encoding="utf-8")
SESSIONS: Final = [
    session for block in re.findall(r"^```console\n(\$ .*?)```", PAGE, re.DOTALL | re.MULTILINE)
    for session in re.findall(r"^\$ (.*?)\n(.*?)(?=^\$ |\Z)", block, re.DOTALL | re.MULTILINE)
]  # fmt: skip
SERVICE: Final = "klamm controller run "
TOOLS: Final = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "zookeeper-shell": "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka",
}
"""The classes that Kafka's scripts run."""

_SHELL_ARGUMENTS: Final = {"zookeeper-shell": ("-server",)}
_NOISE: Final = re.compile(r"$|Connecting to |WATCHER::|WatchedEvent |log4j:|SLF4J")
_VARYING: Final = (
    (r"\d\d:\d\d:\d\d\.\d+", "TIME"),
    (r"(klamm\d|broker\d|127\.0\.0\.1):\d+", "HOST:PORT"),
    (r"\d+", "N"),
    (r"─+", "─"),
    (r"\s+", " "),
)


@define
class Operator:
    """Types the page's commands; its controllers run until the end."""

    cluster: RealCluster
    services: list[tuple[subprocess.Popen[bytes], Path]] = field(factory=list)

    def words_of(self, command: str) -> list[str]:
        """Return a command with the addresses of the test's processes."""
        broker, _, _ = addresses_of(self.cluster).partition(",")
        real = re.sub(r"zk1:2181(,zk\d:2181)*/kafka", self.cluster.zookeeper, command).replace("broker1:9092", broker)
        name, *arguments = shlex.split(re.sub(r"klamm\d", HOST, real))
        if name == "klamm":
            return [sys.executable, "-m", "klamm", *arguments]
        libraries = f"{jars.folder(jars.RELEASE)}/*"
        return [find_java(), "-Xmx128m", "-cp", libraries, TOOLS[name], *_SHELL_ARGUMENTS.get(name, ()), *arguments]

    async def type(self, command: str, shown: str) -> str:
        """Run a command to its end, a service until it has printed what is shown."""
        words = self.words_of(command)
        if not command.startswith(SERVICE):
            done = await trio.run_process(words, capture_stdout=True, stderr=subprocess.STDOUT)
            return done.stdout.decode()
        log = self.cluster.directory / f"service-{len(self.services)}.log"
        self.services.append((spawn(words, log), log))
        await until(partial(self._has_begun, log, settled(shown)))
        return await trio.Path(log).read_text()

    async def _has_begun(self, log: Path, wanted: Sequence[str]) -> bool:
        """Return whether a service has printed these lines; it may print more, and in another order."""
        printed = settled(await trio.Path(log).read_text())
        return bool(printed) and set(wanted) <= set(printed)


@pytest.fixture
async def operator(zookeeper: str, tmp_path: Path) -> AsyncIterator[Operator]:
    """Give the test the operator of three brokers under Kafka's own controller, with a topic."""
    address = f"{zookeeper}/page-{tmp_path.name}"
    async with real_cluster(address, tmp_path, is_first=False) as cluster, open_zookeeper(address) as store:
        # The page starts its own controllers.
        cluster.controllers.kill(FIRST)
        await until(partial(is_gone, store, paths.controller_endpoint(FIRST)))
        await create_topic(cluster.bootstrap, "orders")
        running = Operator(cluster)
        yield running
        for process, _ in running.services:
            kill(process)


def settled(text: str) -> list[str]:
    """Leave out what differs from run to run: times, addresses, numbers, and what Kafka's scripts say besides."""
    kept = [line for line in text.splitlines() if not _NOISE.match(line)]
    for pattern, name in _VARYING:
        kept = [re.sub(pattern, name, line).strip() for line in kept]
    return kept


@pytest.mark.soak
@pytest.mark.usefixtures("kafka_jars")
async def test_the_page_leads_to_klamm_and_back(operator: Operator) -> None:
    assert len(SESSIONS) > 6
    for command, shown in SESSIONS:
        printed = await operator.type(command, shown)
        wanted, found = settled(shown), settled(printed)
        if not command.startswith(SERVICE):
            assert found == wanted, f"$ {command}\n{printed}"
        sys.stdout.write(f"$ {command}\n{printed}")
