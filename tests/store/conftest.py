"""Both implementations of the metadata store, for the tests that hold for either."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import count

import pytest

from transport.store import MemoryZooKeeper, MetadataStore, open_zookeeper

OpenStore = Callable[[], AbstractAsyncContextManager[MetadataStore]]
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


@pytest.fixture(params=["memory", "zookeeper"])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Give the test what opens one more session with a store that is empty at first."""
    if request.param == "memory":
        memory: MemoryZooKeeper = request.getfixturevalue("memory")
        return memory.session
    return partial(open_zookeeper, request.getfixturevalue("chroot"))
