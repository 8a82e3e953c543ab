"""The type of Spark's session, for annotations where PySpark may not be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
else:
    SparkSession = object

__all__ = ["SparkSession"]
