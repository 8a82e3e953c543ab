"""The processes of a cluster that is upgraded: each can be started again with the other source tree."""

from __future__ import annotations

import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from klamm.cli.demo.clusters import log_dir
from tests.cluster.kills_and_pauses import checks
from tests.cluster.kills_and_pauses.nodes import SERVER, ZOOKEEPER, Node, broker_name, controller_name
from tests.cluster.rolling_upgrade.trees import Tree
from tests.kit.ports import free_ports
from transport.child_process import spawn
from transport.zookeeper_server import HOST, spawn_server, wait_until_serving, write_config

BROKERS: Final = (1, 2, 3, 4)
CONTROLLERS: Final = (1001, 1002)
NAMES: Final = (*map(controller_name, CONTROLLERS), *map(broker_name, BROKERS))
"""The order of a rolling upgrade: controllers first."""

SESSION_MS: Final = 4_000
START_SECONDS: Final = 60.0

NO_RESIGNATION: Final = ("resigning after a fault", "deposed", "metadata store failed", "could not resign")
"""What controllers log when they lose their office or give it up without having been stopped."""


@define
class Fleet:
    """ZooKeeper, controllers and brokers, with their data and logs in a folder."""

    folder: Path
    tree: dict[str, Tree]
    """The source tree of each controller and broker."""

    nodes: dict[str, Node] = field(factory=dict, init=False)
    stops: dict[str, int] = field(factory=dict, init=False)
    faults: list[str] = field(factory=list, init=False)
    _ports: dict[str, int] = field(factory=dict, init=False)

    @classmethod
    def of(cls, folder: Path, tree: Tree) -> Fleet:
        """Return a fleet of one tree that has not been started."""
        fleet = cls(folder, dict.fromkeys(NAMES, tree))
        fleet._ports = dict(zip((ZOOKEEPER, *NAMES), free_ports(1 + len(NAMES)), strict=True))
        settings = ("--min-insync-replicas", "2", "--replica-lag-time-max-ms", str(SESSION_MS))
        for id_ in CONTROLLERS:
            fleet._add(controller_name(id_), id_, "controller", "run")
        for id_ in BROKERS:
            fleet._add(broker_name(id_), id_, "broker", "run", *settings, "--log-dir", str(log_dir(folder, id_)))
        fleet.nodes[ZOOKEEPER] = Node(ZOOKEEPER, folder / f"{ZOOKEEPER}.log", fleet._spawn_zookeeper)
        return fleet

    @property
    def zookeeper(self) -> str:
        """The address of ZooKeeper, host:port."""
        return f"{HOST}:{self._ports[ZOOKEEPER]}"

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """The addresses of the brokers."""
        return [(HOST, self._ports[broker_name(id_)]) for id_ in BROKERS]

    @property
    def flag(self) -> Path:
        """The file that names the topic of which broker 4 fails to lead partitions."""
        return self.folder / "cannot-lead"

    async def start(self) -> None:
        """Start everything, controllers and brokers with their trees. Raises DevelopmentServerError or TooSlowError."""
        zookeeper = self.nodes[ZOOKEEPER]
        zookeeper.start()
        await wait_until_serving(zookeeper.process, self._ports[ZOOKEEPER], zookeeper.log)
        for name in NAMES:
            self.nodes[name].start()
        for name in NAMES:
            await self._until_listening(name)

    async def restart(self, name: str, tree: Tree) -> None:
        """Stop a process with SIGTERM and start it with a tree; wait until it listens. Raises TooSlowError."""
        await self.stop(name)
        self.tree[name] = tree
        self.nodes[name].start()
        await self._until_listening(name)

    async def stop(self, name: str) -> None:
        """Stop a process with SIGTERM, and judge how it ends."""
        node = self.nodes[name]
        self.stops[name] = self.stops.get(name, 0) + 1
        fault = checks.exit_fault(name, await node.stop(), node.said(), signal.SIGTERM)
        if fault is not None:
            self.faults.append(fault)

    def kill(self) -> None:
        """End whatever still runs, and wait until it is gone."""
        started = [node for node in self.nodes.values() if node.lives]
        for node in started:
            node.process.kill()
        for node in started:
            node.process.wait()

    def judge_logs(self) -> None:
        """Look for tracebacks, and for controllers that gave up their office although they were not stopped."""
        for name in NAMES:
            text = self.nodes[name].log.read_text(encoding="utf-8", errors="replace")
            # The fault that is injected is logged with its traceback.
            ours = [fault for fault in checks.crashes(name, text) if "as a fault" not in fault]
            lost = [line for line in text.splitlines() if any(words in line for words in NO_RESIGNATION)]
            self.faults += [*ours, *(f"{name} lost its office: {line}" for line in lost)]
            resigned = text.count("] resigned ")
            if resigned > self.stops.get(name, 0):
                self.faults.append(f"{name} resigned {resigned} times, and was stopped {self.stops.get(name, 0)} times")

    async def _until_listening(self, name: str) -> None:
        node = self.nodes[name]
        with trio.fail_after(START_SECONDS):
            while checks.LISTENS not in node.said():
                if node.process.poll() is not None:
                    raise trio.TooSlowError(f"{name} ended while it started: {node.said().strip()[-500:]}")
                await trio.sleep(0.05)

    def _add(self, name: str, id_: int, *words: str) -> None:
        self.nodes[name] = Node(name, self.folder / f"{name}.log", partial(self._spawn, name, id_, *words))

    def _spawn_zookeeper(self) -> subprocess.Popen[bytes]:
        config = write_config(self.folder / ZOOKEEPER, self._ports[ZOOKEEPER], {})
        return spawn_server(SERVER, config, self.folder / f"{ZOOKEEPER}.log")

    def _spawn(self, name: str, id_: int, *words: str) -> subprocess.Popen[bytes]:
        # Broker 4 alone is disturbed: all others look for a file that never exists.
        flag = self.flag if name == broker_name(BROKERS[-1]) else self.folder / "never"
        options = ("--id", str(id_), "--port", str(self._ports[name]), "--zookeeper", self.zookeeper)
        command = self.tree[name].command(flag, *words, *options, "--session-timeout", str(SESSION_MS))
        return spawn(command, self.folder / f"{name}.log")
