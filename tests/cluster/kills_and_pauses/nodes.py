"""The processes of a cluster, ZooKeeper, controllers and brokers, and the faults of each."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from klamm.cli.demo.clusters import log_dir
from tests.kit.ports import free_ports
from transport.child_process import spawn
from transport.zookeeper_server import HOST, spawn_server, write_config

BROKERS: Final = (1, 2, 3, 4, 5, 6)
CONTROLLERS: Final = (1001, 1002, 1003)
ZOOKEEPER: Final = "zookeeper"
STOP_SECONDS: Final = 60.0
"""The time that a process may take to end in good order."""

SERVER: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"


def broker_name(broker_id: int) -> str:
    """Return what a broker is called here; its directory has this name, too."""
    return f"broker-{broker_id}"


def controller_name(controller_id: int) -> str:
    """Return what a controller is called here."""
    return f"controller-{controller_id}"


class State(Enum):
    """The last thing that the run has done to a process."""

    RUNNING = auto()
    PAUSED = auto()
    DOWN = auto()


@define
class Node:
    """A process that is started again and again, and the log of all its lives."""

    name: str
    log: Path
    spawn: Callable[[], subprocess.Popen[bytes]]
    state: State = State.DOWN
    lives: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _log_start: int = 0

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process of the present life, or of the last one."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process

    def start(self) -> None:
        """Begin a life, when the one before is over."""
        assert self._process is None or self._process.poll() is not None, f"{self.name} still runs"
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self._process = self.spawn()
        self.state = State.RUNNING
        self.lives += 1

    def said(self) -> str:
        """Return what the log has of the present life."""
        return self.log.read_bytes()[self._log_start :].decode(errors="replace")

    def pause(self) -> None:
        """Let the process stand still."""
        self.process.send_signal(signal.SIGSTOP)
        self.state = State.PAUSED

    def resume(self) -> None:
        """Let the process continue."""
        self.process.send_signal(signal.SIGCONT)
        self.state = State.RUNNING

    async def kill(self) -> None:
        """End the process with SIGKILL, paused or not."""
        self.state = State.DOWN
        self.process.kill()
        await trio.to_thread.run_sync(self.process.wait)

    async def stop(self) -> int | None:
        """Ask the process to end with SIGTERM; return its exit code, None if it did not end and was killed."""
        self.state = State.DOWN
        self.process.terminate()
        with trio.move_on_after(STOP_SECONDS):
            while self.process.poll() is None:
                await trio.sleep(0.05)
        if self.process.poll() is None:
            await self.kill()
            return None
        return self.process.returncode

    def memory_kb(self) -> int | None:
        """Return the resident memory of the process, None if it is not there."""
        if self._process is None or self._process.poll() is not None:
            return None
        with suppress(OSError):
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
            sizes = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
            return int(sizes[0]) if sizes else None
        return None


@define
class Nodes:
    """All processes of one cluster, with their data and logs in a folder; each has the same port in all its lives."""

    folder: Path
    session_ms: int
    """The time-out of the sessions with ZooKeeper, and how long a follower may lag."""

    by_name: dict[str, Node] = field(factory=dict)
    ports: dict[str, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        ids = {**{broker_name(id_): id_ for id_ in BROKERS}, **{controller_name(id_): id_ for id_ in CONTROLLERS}}
        self.ports = dict(zip((ZOOKEEPER, *ids), free_ports(1 + len(ids)), strict=True))
        self._add(ZOOKEEPER, self._spawn_zookeeper)
        for id_ in CONTROLLERS:
            self._add(controller_name(id_), partial(self._spawn, id_, controller_name(id_), "controller", "run"))
        settings = ["--min-insync-replicas", "2", "--replica-lag-time-max-ms", str(self.session_ms)]
        settings += ["--controlled-shutdown-retry-backoff-ms", "1000"]
        for id_ in BROKERS:
            words = ["broker", "run", *settings, "--log-dir", str(log_dir(self.folder, id_))]
            self._add(broker_name(id_), partial(self._spawn, id_, broker_name(id_), *words))

    @property
    def zookeeper(self) -> str:
        """The address of ZooKeeper, host:port."""
        return f"{HOST}:{self.ports[ZOOKEEPER]}"

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """The addresses of the brokers."""
        return [(HOST, self.ports[broker_name(id_)]) for id_ in BROKERS]

    def end(self) -> None:
        """End whatever still runs, paused or not, and wait until it is gone."""
        started = [node for node in self.by_name.values() if node.lives]
        for node in started:
            node.process.kill()
        for node in started:
            node.process.wait()

    def _add(self, name: str, spawn_it: Callable[[], subprocess.Popen[bytes]]) -> None:
        self.by_name[name] = Node(name, self.folder / f"{name}.log", spawn_it)

    def _spawn_zookeeper(self) -> subprocess.Popen[bytes]:
        config = write_config(self.folder / ZOOKEEPER, self.ports[ZOOKEEPER], {})
        return spawn_server(SERVER, config, self.folder / f"{ZOOKEEPER}.log")

    def _spawn(self, id_: int, name: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "klamm", *words, "--id", str(id_)]
        command += [
            "--port",
            str(self.ports[name]),
            "--zookeeper",
            self.zookeeper,
            "--session-timeout",
            str(self.session_ms),
        ]
        return spawn(command, self.folder / f"{name}.log")
