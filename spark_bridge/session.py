"""A Spark session inside this process and one JVM beside it: loopback only, nothing on the terminal, no files left."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson
from pyspark.sql import DataFrame, SparkSession

_LOOPBACK = "127.0.0.1"

_JAVA_OPTIONS = "-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""No file in /tmp, and only the quick compiler: a JVM that lives for seconds does not earn back what the optimizing one
costs. On 2 cores that halves the CPU time of a small plan, and a plan for 300,000 partitions is no slower."""


@contextmanager
def spark_session(scratch: Path) -> Iterator[SparkSession]:
    """Start Spark for the length of the block; whatever it spills goes below `scratch`."""
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = _builder(scratch).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def stage(spark: SparkSession, path: Path, rows: Iterable[Mapping[str, object]], schema: str) -> DataFrame:
    """Hand rows to Spark as a file of JSON lines, which it reads in parallel and without Python workers.

    Args:
        spark: The session.
        path: A file that is not there yet.
        rows: One mapping for each row.
        schema: The columns and types, in SQL's notation.
    """
    with path.open("xb") as file:
        file.writelines(orjson.dumps(row) + b"\n" for row in rows)
    return spark.read.schema(schema).option("mode", "FAILFAST").json(str(path))


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Send what this process and those that it starts print into a file: the JVM talks before its log level is set."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for saved, stream in zip(kept, (1, 2), strict=True):
            os.dup2(saved, stream)
            os.close(saved)


def _builder(scratch: Path) -> SparkSession.Builder:
    settings = {
        "spark.app.name": "klamm plan",
        "spark.master": "local[*]",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch} {_JAVA_OPTIONS}",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # The default of 200 is for clusters; adaptive execution merges what is too small of these.
        "spark.sql.shuffle.partitions": "16",
    }
    builder: SparkSession.Builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder
