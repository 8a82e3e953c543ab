from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.session import SparkSession


@pytest.fixture
def few_tasks(spark: SparkSession) -> Iterator[None]:
    """Shuffle a few rows in a few tasks."""
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    assert usual is not None
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", usual)
