"""A Spark session: on this machine, on a cluster, or on a Spark Connect server. Only DataFrames from here on.

On this machine it listens on loopback only, prints nothing on the terminal, and leaves no files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit
from zipfile import ZipFile

import attr
import attrs
from pyspark.sql import SparkSession

import spark_bridge

_LOOPBACK = "127.0.0.1"

_JAVA_OPTIONS = "-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""No file in /tmp, and only the quick compiler: the optimizing one does not pay off in a JVM that lives for seconds.

On 2 cores this halves the CPU time of a small plan, and a plan for 300,000 partitions is no slower.
"""

_GIGABYTE = 2**30

_SQL = {
    # No limit: with one, Spark measures the batch again for each row, which took ten times as long as the work itself.
    # A task reads few blocks (see below), so they may come in one batch.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # A batch of rows is cut into as many pieces as there are blocks, so small batches make many small pieces.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Blocks are files of some megabytes; few of them per task, so that all cores have some.
    "spark.sql.files.maxPartitionBytes": "16m",
    # Each partition, full or empty, costs a task in each shuffle.
    "spark.sql.shuffle.partitions": "64",
}

_PACKAGES = (attr, attrs, spark_bridge)
"""The packages that workers import, except NumPy and PyArrow: these are compiled, so workers must have them."""

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


@contextmanager
def spark_session(
    scratch: Path, master: str | None = None, remote: str | None = None, conf: Mapping[str, str] = NO_SETTINGS
) -> Iterator[SparkSession]:
    """Run Spark during a `with` block, with this program's code on its workers.

    Args:
        scratch: A folder of this session's own, for everything that it writes on this machine.
        master: Where Spark runs, in the format of `spark-submit --master`; None for this machine.
        remote: A Spark Connect server to use instead.
        conf: Settings that take precedence over the defaults.
    """
    settings = {**_SQL, **conf} if remote is not None else classic_settings(scratch, master or "local[*]", conf)
    builder: SparkSession.Builder = SparkSession.builder
    if remote is not None:
        builder = builder.remote(remote)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        spark.addArtifacts(str(_zip_for_workers(scratch)), pyfile=True)
        yield spark
    finally:
        spark.stop()


def jvm_of(spark: SparkSession) -> subprocess.Popen[bytes] | None:
    """Return the JVM that this process started for a session; None for a Spark Connect server."""
    context = getattr(spark, "_sc", None)
    jvm: subprocess.Popen[bytes] | None = getattr(getattr(context, "_gateway", None), "proc", None)
    return jvm


def classic_settings(scratch: Path, master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session whose driver is a JVM of our own, and set the environment for the others."""
    # The launcher is a JVM as well, and would have a file in /tmp while it runs.
    os.environ["SPARK_LAUNCHER_OPTS"] = "-XX:-UsePerfData"
    if "spark.pyspark.python" in conf:
        # PySpark reads only the environment variable.
        os.environ["PYSPARK_PYTHON"] = conf["spark.pyspark.python"]
    java_options = f"-Djava.io.tmpdir={scratch} {_JAVA_OPTIONS} {conf.get('spark.driver.extraJavaOptions', '')}"
    return {
        **_SQL,
        "spark.app.name": "klamm plan",
        "spark.master": master,
        "spark.driver.memory": f"{_heap() // 2**20}m",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **({"spark.sql.shuffle.partitions": _parts_here()} if master.startswith("local") else {}),
        **(_here() if _is_here(master) else {}),
        **conf,
        "spark.driver.extraJavaOptions": java_options.strip(),
    }


def _here() -> dict[str, str]:
    """Keep to loopback, and make workers run the Python of this process unless the user has chosen another."""
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}


def _is_here(master: str) -> bool:
    """Return whether everything runs on this machine: inside the driver, or on a cluster on loopback."""
    return master.startswith("local") or urlsplit(master).hostname in ("localhost", _LOOPBACK)


def _parts_here() -> str:
    """Return the number of shuffle partitions on this machine: several per core, so that no core waits long."""
    return str(max(8, 2 * (os.cpu_count() or 1)))


def _heap() -> int:
    """Return the size of the driver's heap in bytes: a quarter of the memory, from 1 to 8 GB."""
    return min(max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4, _GIGABYTE), 8 * _GIGABYTE)


def _zip_for_workers(folder: Path) -> Path:
    """Write the packages that workers import into a zip file, so that they need no installation; return its path."""
    path = folder / "klamm_workers.zip"
    with ZipFile(path, "w") as archive:
        for package in _PACKAGES:
            home = Path(str(package.__file__)).parent
            for file in sorted(home.rglob("*.py")):
                archive.write(file, file.relative_to(home.parent))
    return path
