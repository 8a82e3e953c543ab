"""A cluster in this process, and a shell for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from klamm.cli.demo.task_cluster import task_cluster
from tests.cli.shell import Shell, bootstrap_of


@pytest.fixture
async def klamm(tmp_path: Path) -> AsyncIterator[Shell]:
    async with task_cluster(tmp_path) as cluster:
        yield Shell(await bootstrap_of(cluster.store))
