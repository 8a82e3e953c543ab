"""A ZooKeeper ensemble of three servers on loopback, which can be killed, paused and restarted."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from tests.kit.ports import free_ports
from transport.zookeeper_server import HOST, LOG_NAME, spawn_server, stop_server, wait_until_serving, write_config

SIZE: Final = 3
MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
ANSWER_SECONDS: Final = 0.5


@define
class Server:
    """One server of the ensemble, running or not."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes]

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def mode(self) -> str | None:
        """Return "leader" or "follower"; None if the server does not answer with either."""
        answer = b""
        with suppress(OSError, trio.BrokenResourceError), trio.move_on_after(ANSWER_SECONDS):
            async with await trio.open_tcp_stream(HOST, self.port) as stream:
                await stream.send_all(b"srvr")
                answer = b"".join([part async for part in stream])
        lines = answer.decode().splitlines()
        return next((line.removeprefix("Mode: ") for line in lines if line.startswith("Mode: ")), None)


@define
class Ensemble:
    """The servers, in no particular order."""

    servers: list[Server] = field(factory=list)

    async def leader(self) -> Server:
        """Return the leader, once there is one."""
        while True:
            for server in self.servers:
                if server.process.poll() is None and await server.mode() == "leader":
                    return server
            await trio.sleep(0.05)

    async def kill(self, server: Server) -> None:
        """Kill a server, paused or not, with SIGKILL."""
        server.send_signal(signal.SIGKILL)
        await trio.to_thread.run_sync(server.process.wait)

    async def start_again(self, server: Server) -> None:
        """Start a server that was killed, and wait until it serves."""
        server.process = _spawn(server.directory)
        await wait_until_serving(server.process, server.port, server.directory / LOG_NAME)

    async def until_serving(self) -> None:
        """Wait until all servers serve."""
        for server in self.servers:
            await wait_until_serving(server.process, server.port, server.directory / LOG_NAME)


@asynccontextmanager
async def zookeeper_ensemble(directory: Path) -> AsyncIterator[Ensemble]:
    """Run an ensemble until the block ends."""
    ports = iter(free_ports(3 * SIZE))
    peers = {f"server.{number}": f"{HOST}:{next(ports)}:{next(ports)}" for number in range(1, SIZE + 1)}
    ensemble = Ensemble()
    try:
        for number in range(1, SIZE + 1):
            home = directory / str(number)
            home.mkdir(parents=True)
            (home / "myid").write_text(str(number))
            port = next(ports)
            write_config(home, port, {"initLimit": 20, "syncLimit": 20, **peers})
            ensemble.servers.append(Server(home, port, _spawn(home)))
        await ensemble.until_serving()
        yield ensemble
    finally:
        with trio.CancelScope(shield=True):
            for server in ensemble.servers:
                server.send_signal(signal.SIGCONT)
                server.send_signal(signal.SIGKILL)
            for server in ensemble.servers:
                await trio.to_thread.run_sync(stop_server, server.process)


def _spawn(home: Path) -> subprocess.Popen[bytes]:
    return spawn_server(MAIN, home / "zoo.cfg", home / LOG_NAME)
