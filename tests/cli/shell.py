"""Running the command as a process against a cluster in this process."""

from __future__ import annotations

import subprocess
import sys

import trio
from attrs import frozen

from controller.admin.client import AdminClient
from transport.metadata import BrokerRegistration
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore


async def run_klamm(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "klamm", *arguments]
    return await trio.run_process(command, stdin=stdin, capture_stdout=True, capture_stderr=True, check=False)


@frozen
class Shell:
    """Runs commands against the cluster."""

    bootstrap: str

    async def __call__(self, *arguments: str, stdin: bytes = b"", fails: bool = False) -> str:
        done = await run_klamm(*arguments, "--bootstrap-server", self.bootstrap, stdin=stdin)
        assert (done.returncode != 0) is fails, done.stderr.decode()
        return (done.stderr if fails else done.stdout).decode()


async def bootstrap_of(store: MetadataStore) -> str:
    """Wait for the six brokers, and return the addresses of two."""
    admin = AdminClient(TcpNetwork(), (), store, 30)
    while len(brokers := (await admin.read_metadata()).brokers) < 6:
        await trio.sleep(0.01)
    return ",".join(f"{broker.host}:{broker.port}" for broker in brokers[:2])


async def register_deaf_broker(store: MetadataStore, broker_id: int) -> None:
    """Let the controller believe in a broker to which nothing can be moved."""
    registration = formats.encode_broker(BrokerRegistration(broker_id, "127.0.0.1", 1, 0), 0)
    await store.multi([Create(paths.broker(broker_id), registration, ephemeral=True)])
