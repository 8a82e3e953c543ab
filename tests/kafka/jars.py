"""The jars of Kafka's releases, fetched once by Maven into a cache outside the checkout.

`python -m tests.kafka.jars` fetches those of `make kafka-test`, about 90 MB, and `python -m tests.kafka.jars 2.8.2`
those of another release. The cache is `$KLAMM_KAFKA_JARS`, or else `~/.cache/klamm/kafka`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

RELEASE: Final = "3.9.1"
"""The last line of releases with ZooKeeper."""

KRAFT: Final = "4.1.0"
"""A release without ZooKeeper."""

_POM: Final = Path(__file__).with_name("pom.xml")


def folder(release: str) -> Path:
    """Return the folder of a release's jars, whether they are there or not."""
    cache = os.environ.get("KLAMM_KAFKA_JARS")
    return (Path(cache) if cache else Path.home() / ".cache/klamm/kafka") / release


def fetched(release: str) -> Path | None:
    """Return the folder of a release's jars; None if they have not been fetched."""
    found = folder(release)
    return found if any(found.glob("kafka_2.13-*.jar")) else None


def has_tools(release: str) -> bool:
    """Return whether the command-line tools of a release have been fetched; those of older ones are in kafka_2.13."""
    return (folder(release) / f"kafka-tools-{release}.jar").exists()


def fetch(release: str) -> Path:
    """Fetch the jars of a release unless they are there, and return their folder."""
    there = fetched(release)
    needs_tools = release == RELEASE
    if there is not None and (has_tools(release) or not needs_tools):
        return there
    maven = shutil.which("mvn")
    if maven is None:
        sys.exit("Kafka's jars are fetched by Maven, which is not installed: apt-get install maven")
    target = folder(release)
    partial = target.with_name(f"{release}.part")
    shutil.rmtree(partial, ignore_errors=True)
    options = [f"-Dkafka={release}", f"-DoutputDirectory={partial}", *(["-Dtools"] if needs_tools else [])]
    subprocess.run([maven, "-q", "-B", "-f", _POM, "dependency:copy-dependencies", *options], check=True)
    if there is None:
        partial.rename(target)
        return target
    # The others are those of an earlier fetch, and may be in use.
    tools = f"kafka-tools-{release}.jar"
    (partial / tools).rename(target / tools)
    shutil.rmtree(partial)
    return target


if __name__ == "__main__":
    for name in sys.argv[1:] or [RELEASE, KRAFT]:
        sys.stdout.write(f"{fetch(name)}\n")
