"""One Spark session for all tests that plan in this process; without Java they are skipped and say so."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from spark_bridge.process.opener import java_problem
from tests.kit.forked_bridge import plan_in_forks
from tests.spark.session import SparkSession

QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Spark interprets its plans: for rows as few as these, compiling them costs a quarter of its processor time."""


@pytest.fixture(scope="session")
def java() -> None:
    """Skip where Spark cannot start."""
    reason = java_problem() if find_spec("pyspark") else "no PySpark: pip install 'klamm[spark]'"
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    del java
    from spark_bridge.process.session import spark_session  # noqa: PLC0415 (there may be no PySpark)

    with spark_session(tmp_path_factory.mktemp("spark"), conf=QUICK) as session:
        yield session


@pytest.fixture
def forked_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands plan in forks, where it does not matter how a bridge starts."""
    plan_in_forks(monkeypatch)
