"""Running the command as a process against a cluster in this process."""

from __future__ import annotations

import atexit
import os
import re
import subprocess
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from resource import RLIM_INFINITY
from typing import Final

import trio
from attrs import frozen

from controller.admin.client import AdminClient
from tests.kit.fork_server import ForkServer, fork_server
from transport.metadata import BrokerRegistration
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore

_CLUSTER: Final = re.compile(r"\Acluster (\S+ )?at \S+( \(profile .*\))?\n")

LONGEST_SECONDS: Final = 240
"""After that a command is killed, so that one that waits for ever fails its test."""


async def run_klamm(*arguments: str, stdin: bytes = b"", whole: bool = False) -> subprocess.CompletedProcess[bytes]:
    """Run the command, in a fork of a process that has imported it before.

    Commands that change something print first which cluster that is: their stderr is without that line unless it is to
    be the `whole`. The walk over all commands tests the line.
    """
    run = partial(forks().run, arguments, cwd=Path.cwd(), text=stdin, environment=dict(os.environ))
    done = await trio.to_thread.run_sync(run)
    stderr = done.stderr if whole else _CLUSTER.sub("", done.stderr)
    out, err = (text.encode(errors="surrogateescape") for text in (done.stdout, stderr))
    return subprocess.CompletedProcess(arguments, done.code, out, err)


@cache
def forks() -> ForkServer:
    """Start the server, for all tests of this process; it ends with it."""
    stack = ExitStack()
    atexit.register(stack.close)
    server = fork_server(os.environ, seconds=LONGEST_SECONDS, most_bytes=RLIM_INFINITY, as_root=True)
    return stack.enter_context(server)


@frozen
class Shell:
    """Runs commands against the cluster."""

    bootstrap: str

    async def __call__(self, *arguments: str, stdin: bytes = b"", fails: bool = False) -> str:
        done = await run_klamm(*arguments, "--bootstrap-server", self.bootstrap, stdin=stdin)
        assert (done.returncode != 0) is fails, done.stderr.decode()
        return without_cluster(done.stderr.decode()) if fails else done.stdout.decode()


def without_cluster(stderr: str) -> str:
    """Return what a command that changes something prints on stderr after the line about the cluster."""
    return _CLUSTER.sub("", stderr)


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
