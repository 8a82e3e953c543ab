"""The store of an existing cluster, for clients: a misspelt chroot must not start a new cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Final

import trio

from transport.store import paths
from transport.store.protocol import MetadataStore, StoreError
from transport.store.security import OPEN, ZooKeeperSecurity
from transport.store.zookeeper import ZooKeeperStore, open_zookeeper, parse_hosts

_LOOK_SECONDS: Final = 0.2
_MOST_NAMES: Final = 1_000
"""The number of znodes below the root that are searched for the intended cluster."""


class NoCluster(StoreError):
    """There is no cluster below a chroot; the message suggests the intended chroot."""


@asynccontextmanager
async def open_existing(
    hosts: str, *, patience: float = 0, connect_timeout: float = 15, security: ZooKeeperSecurity = OPEN
) -> AsyncIterator[ZooKeeperStore]:
    """Hold a session with the ZooKeeper at `hosts` for the block, provided that there is a cluster.

    Args:
        hosts: "127.0.0.1:2181,127.0.0.1:2182/chroot"; the chroot is not created.
        patience: Seconds to wait for a cluster that is being started.
        connect_timeout: Seconds to wait for a server that accepts connections but does not answer.
        security: As for `open_zookeeper`.

    Raises:
        NoCluster: There is no cluster.
        StoreUnavailable: As for `open_zookeeper`.
    """
    _, chroot = parse_hosts(hosts)
    servers = hosts.partition("/")[0]
    async with open_zookeeper(servers, connect_timeout=connect_timeout, security=security) as root:
        deadline = trio.current_time() + patience
        while not await _is_there(root, chroot):
            if trio.current_time() >= deadline:
                raise NoCluster(f"there is no cluster below {chroot or '/'} at {servers}: {await _cure(root, chroot)}")
            await trio.sleep(_LOOK_SECONDS)
        yield root.below(chroot)


async def _is_there(root: MetadataStore, chroot: str) -> bool:
    begun = await root.read([chroot + paths.BROKER_IDS, chroot + paths.CONTROLLER_EPOCH])
    return any(znode is not None for znode in begun)


async def _cure(root: MetadataStore, chroot: str) -> str:
    """Return a message that says what the chroot lacks, and suggests another chroot."""
    [names] = await root.children(["/"])
    chroots = [f"/{name}" for name in sorted(names or ())[:_MOST_NAMES]]
    # A znode named brokers is not enough: /config has one, for the settings of brokers.
    brokers = await root.read([above + paths.BROKER_IDS for above in chroots])
    clusters = [above for above, znode in zip(chroots, brokers, strict=True) if znode is not None]
    near = get_close_matches(chroot, clusters, n=1)
    if near:
        cure = f"did you mean {near[0]}?"
    elif await _is_there(root, ""):
        cure = f"there is one at the root: leave out {chroot}"
    else:
        cure = "check the chroot of HOST:PORT/CHROOT"
    return f"it has neither brokers nor controller_epoch: {cure}"
