"""The implementations of the metadata store, for the tests of all of them."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import count

import pytest

from simulator.store.ensemble import SimulatedEnsemble
from tests.kit.acls import give_away
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import MetadataStore
from transport.store.security import ZooKeeperSecurity
from transport.store.tree import Access, Tree
from transport.store.zookeeper import open_zookeeper

OpenStore = Callable[[], AbstractAsyncContextManager[MetadataStore]]
OWNER = "klamm:secret"
NOW_MS = 1_700_000_000_000

_numbers = count()


@pytest.fixture
def chroot(zookeeper: str, request: pytest.FixtureRequest) -> str:
    """Give the test a part of ZooKeeper for itself, as host:port/chroot."""
    return f"{zookeeper}/{request.function.__name__}-{next(_numbers)}"


@pytest.fixture
def memory() -> MemoryZooKeeper:
    """Give the test a tree of its own whose clock stands still."""
    return MemoryZooKeeper(lambda: NOW_MS)


@pytest.fixture
def ensemble() -> SimulatedEnsemble:
    """Give the test an ensemble that never fails, so that no time passes in it."""
    return SimulatedEnsemble(random.Random(0), lambda: NOW_MS, on_commit=lambda *_: None)


@pytest.fixture
def simulated(ensemble: SimulatedEnsemble) -> OpenStore:
    """Give the test what opens sessions with such an ensemble."""
    return lambda: ensemble.session(f"host-{next(_numbers)}", 18.0)


@pytest.fixture(params=["memory", "simulated", "zookeeper", "secured zookeeper"])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Give the test what opens one more session with a store that is empty at first."""
    if request.param == "memory":
        memory: MemoryZooKeeper = request.getfixturevalue("memory")
        return memory.session
    if request.param == "simulated":
        simulated: OpenStore = request.getfixturevalue("simulated")
        return simulated
    opening = partial(open_zookeeper, request.getfixturevalue("chroot"))
    if request.param == "secured zookeeper":
        return partial(opening, security=ZooKeeperSecurity(OWNER, set_acl=True))
    return opening


GiveAway = Callable[[str], Awaitable[None]]


@pytest.fixture
def give_away_znode(request: pytest.FixtureRequest) -> GiveAway:
    """Give the test what gives a znode of `open_store` an ACL of somebody else."""
    kind = request.node.callspec.params["open_store"]
    if "zookeeper" in kind:
        return partial(give_away, request.getfixturevalue("chroot"), owner=OWNER)
    tree: Tree = request.getfixturevalue("memory" if kind == "memory" else "ensemble").tree

    async def close(path: str) -> None:
        tree.allow(path, Access.NONE)

    return close
