"""A cluster with a topic, and plans that `klamm rollout` carries out there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from attrs import frozen

from klamm.cli.demo.task_cluster import task_cluster
from tests.cli.shell import Shell, bootstrap_of
from transport.store.protocol import MetadataStore

START, TARGET, DEAF = [1, 2], [3, 4], 9


@frozen
class RolloutPlace:
    """The cluster, and the folder of a plan."""

    klamm: Shell
    store: MetadataStore
    plan: Path

    async def create(self, *replicas: Sequence[int]) -> None:
        """Create the topic."""
        assignment = ",".join(":".join(map(str, each)) for each in replicas)
        await self.klamm("topic", "create", "orders", "--replica-assignment", assignment)

    async def replicas(self) -> list[list[int]]:
        """Return the replicas of each partition of the topic."""
        return [row["replicas"] for row in json.loads(await self.klamm("topic", "describe", "orders", "-o", "json"))]


P = TypeVar("P", bound=RolloutPlace)


@asynccontextmanager
async def rollout_place(kind: type[P], folder: Path, plan: str) -> AsyncIterator[P]:
    """Run a cluster for the block."""
    async with task_cluster(folder / "cluster") as cluster:
        yield kind(Shell(await bootstrap_of(cluster.store)), cluster.store, folder / plan)


def moves_in_a_plan(
    targets: Iterable[Sequence[int]], *, first: int = 0, before: Sequence[int] = START
) -> list[dict[str, object]]:
    """Return moves as a plan has them: of partitions in turn."""
    return [
        {"topic": "orders", "partition": p, "replicas": list(target), "before": before}
        for p, target in enumerate(targets, first)
    ]


def write_plan(path: Path, moves: Sequence[dict[str, object]]) -> None:
    """Write a file of a plan."""
    path.write_text(json.dumps({"version": 1, "partitions": moves}))
