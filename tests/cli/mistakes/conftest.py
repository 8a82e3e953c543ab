"""The scene of the mistakes: a cluster, a folder, and a process that becomes `klamm` in no time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import trio

import klamm
from tests.cli.mistakes.folder import furnish
from tests.cli.mistakes.scene import Scene, scene
from tests.kit.fork_server import ForkServer, fork_server
from transport.store.protocol import Create
from transport.store.zookeeper import open_zookeeper

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(klamm.__file__).parent.parent), "COLUMNS": "200"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folder")
    furnish(place)
    return place


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    with fork_server(ENVIRONMENT) as server:
        yield server


@pytest.fixture(scope="module")
def registered(zookeeper: str, cluster: Scene) -> Mapping[str, str]:
    """Copy what the cluster has in its store to a real ZooKeeper, and give that one's addresses."""
    address = f"{zookeeper}/mistakes-{os.getpid()}"
    trio.run(_copy, address, [Create(path, data) for path, (data, _) in cluster.znodes().items() if path != "/"])
    return {"ZOOKEEPER": address, "ZOOKEEPER_PORT": zookeeper.rpartition(":")[2]}


async def _copy(address: str, znodes: Sequence[Create]) -> None:
    async with open_zookeeper(address) as store:
        await store.multi(znodes)
