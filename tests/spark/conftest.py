"""One Spark session for all tests that plan in this process; without Java they are skipped and say so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_bridge.java import java_problem
from spark_bridge.plan import Plan
from spark_bridge.rules import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def java() -> None:
    """Skip where Spark cannot start."""
    reason = java_problem() if find_spec("pyspark") else "no PySpark: pip install 'klamm[spark]'"
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    del java
    from spark_bridge.session import spark_session  # noqa: PLC0415 (there may be no PySpark)

    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def plan_here(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Cluster], Plan]:
    """Plan in this process, on the one session."""
    from spark_bridge.removal import plan_removal  # noqa: PLC0415

    return lambda cluster: plan_removal(spark, cluster, tmp_path_factory.mktemp("plan"))


@pytest.fixture
def snapshot_file(tmp_path: Path) -> Path:
    """Write a cluster of four brokers in two racks, and three partitions, as `klamm state dump` prints it."""
    path = tmp_path / "snapshot.json"
    lists = [[1, 2], [2, 3], [3, 4]]
    partitions = [
        {
            "topic": "orders",
            "partition": n,
            "replicas": r,
            "adding_replicas": [],
            "removing_replicas": [],
            "leader": r[0],
        }
        for n, r in enumerate(lists)
    ]
    brokers = [{"id": b, "host": "127.0.0.1", "port": 9000 + b, "rack": f"r{b % 2}"} for b in (1, 2, 3, 4)]
    path.write_text(json.dumps({"brokers": brokers, "partitions": partitions, "controller": {"id": 101}}))
    return path
