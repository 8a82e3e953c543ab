"""Each cell of the matrix in docs/kafka_clusters.md is true of a running cluster of its kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio

from klamm.cli.demo.task_cluster import task_cluster
from tests.cli.shell import Shell, bootstrap_of
from tests.kafka import command_matrix, jars, kraft_cluster
from tests.kafka.command_matrix import KINDS, PARTITIONS, ROWS, Scene
from tests.kafka.real_cluster import real_cluster
from tests.kafka.releases import require_jars
from tests.kafka.test_kraft_commands import brokers_on, fill, nodes_in, until_registered

LINES: Final = b"x" * 9_999 + b"\n"
ASSIGNMENT: Final = ",".join(["1:2", "2:1"] * (PARTITIONS // 2))

Opening = Callable[[str, Path], AbstractAsyncContextManager[Shell]]


async def create(shell: Shell) -> None:
    """Create the topic of the scene."""
    await shell("topic", "create", "orders", "--replica-assignment", ASSIGNMENT)


@asynccontextmanager
async def of_klamm(_: str, folder: Path) -> AsyncIterator[Shell]:
    """Run Klamm's controllers and brokers."""
    async with task_cluster(folder / "cluster", auto_leader_rebalance_enable=False) as cluster:
        shell = Shell(await bootstrap_of(cluster.store))
        await create(shell)
        for number in range(PARTITIONS):
            await shell("produce", "orders", "--partition", str(number), stdin=LINES * 300)
        yield shell


@asynccontextmanager
async def under_klamm(zookeeper: str, folder: Path) -> AsyncIterator[Shell]:
    """Run Kafka's brokers under a controller of Klamm's, which the commands ask."""
    async with real_cluster(f"{zookeeper}/{folder.name}", folder) as cluster:
        endpoint = await cluster.admin.find_controller()
        shell = Shell(f"{endpoint.host}:{endpoint.port}")
        await create(shell)
        await trio.to_thread.run_sync(fill, cluster.clients[1])
        yield shell


@asynccontextmanager
async def with_zookeeper(zookeeper: str, folder: Path) -> AsyncIterator[Shell]:
    """Run Kafka's brokers under a controller of their own."""
    async with brokers_on(f"{zookeeper}/{folder.name}", folder, jars.RELEASE) as bootstrap:
        yield await filled(bootstrap)


@asynccontextmanager
async def under_kraft(_: str, folder: Path) -> AsyncIterator[Shell]:
    """Run nodes under KRaft."""
    async with nodes_in(folder, 3) as bootstrap:
        yield await filled(bootstrap)


async def filled(bootstrap: str) -> Shell:
    """Create the topic in a cluster of Kafka's alone, and fill it."""
    shell = Shell(bootstrap)
    await until_registered(shell, 3)
    await create(shell)
    await trio.to_thread.run_sync(fill, bootstrap)
    return shell


def test_the_document_has_just_these_rows() -> None:
    assert list(command_matrix.cells()) == list(ROWS)


@pytest.mark.parametrize(
    ("opening", "kind", "release"),
    [
        (of_klamm, KINDS[0], ""),
        pytest.param(under_klamm, KINDS[1], jars.RELEASE, marks=pytest.mark.soak),
        pytest.param(with_zookeeper, KINDS[2], jars.RELEASE, marks=pytest.mark.soak),
        pytest.param(under_kraft, KINDS[3], kraft_cluster.RELEASE, marks=pytest.mark.soak),
    ],
    ids=["klamm", "under-klamm", "zookeeper", "kraft"],
)
async def test_each_cell(opening: Opening, kind: str, release: str, zookeeper: str, tmp_path: Path) -> None:
    if release:
        require_jars(release)
    promised = {name: answers[kind] for name, answers in command_matrix.cells().items()}
    async with opening(zookeeper, tmp_path) as shell:
        scene = Scene(shell, tmp_path)
        assert {name: await row(scene) for name, row in ROWS.items()} == promised
