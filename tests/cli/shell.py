"""Running the command as a process against a cluster in this process."""

from __future__ import annotations

import subprocess
import sys

import trio
from attrs import frozen

from controller.admin_client import AdminClient
from transport.network import TcpNetwork
from transport.store.protocol import MetadataStore


async def run_klamm(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "controller.cli", *arguments]
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
    while len(brokers := (await admin.describe_cluster()).brokers) < 6:
        await trio.sleep(0.01)
    return ",".join(f"{broker.host}:{broker.port}" for broker in brokers[:2])
