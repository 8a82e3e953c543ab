"""Reading a cluster of Apache Kafka's: `klamm state dump` compared with Kafka's tools, in one run.

Three nodes under KRaft have 20,000 partitions, by default with 2 replicas. What planning needs of them is printed by
`kafka-topics --describe` and `kafka-log-dirs --describe` together. Each is a process from its start to its end, Kafka's
with the options of its distribution. The rounds alternate; the ratio is the median of those of the rounds. Then a plan
is made of the running cluster. The data are in memory, in /dev/shm, if there is one.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import trio
from attrs import frozen

from benchmarks.kit import command
from tests.kafka import jars
from tests.kafka.kraft_cluster import kraft_cluster
from transport.zookeeper_server import find_java

TOPICS: Final = 20
PARTITIONS: Final = 20_000
BROKERS: Final = 3
ROUNDS: Final = 3
MOST: Final = 0.5
"""The part of the time of Kafka's tools that reading may take."""

_SETTINGS: Final = {"log.index.size.max.bytes": "4096", "num.io.threads": "4"}
_MEMORY: Final = "/dev/shm"  # noqa: S108 - tempfile makes a folder of its own in it
_RUN_CLASS: Final = ("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:MaxInlineLevel=15")
"""The options that bin/kafka-run-class.sh gives a tool."""


@frozen
class Cost:
    """The time of a process, in seconds."""

    elapsed: float
    processor: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.elapsed + other.elapsed, self.processor + other.processor)

    def __str__(self) -> str:
        return f"{self.elapsed:.2f} s, processor {self.processor:.2f} s"


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def ran(*command: str) -> Cost:
    """Run a process, whose output is dropped. Ends this one if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:3])} failed: {done.stderr}")
    after, elapsed = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(elapsed, processor)


def tool(name: str, bootstrap: str) -> Cost:
    """Run a tool of Kafka's that describes all."""
    java = (find_java(), *_RUN_CLASS, "-cp", f"{jars.folder(jars.RELEASE)}/*", f"org.apache.kafka.tools.{name}")
    return ran(*java, "--bootstrap-server", bootstrap, "--describe")


def klamm(*words: str) -> Cost:
    """Run the command."""
    return ran(sys.executable, "-m", "klamm", *words)


def create(bootstrap: str, replicas: int) -> None:
    """Create the topics."""
    counts = ("--partitions", str(PARTITIONS // TOPICS), "--replication-factor", str(replicas))
    for number in range(TOPICS):
        klamm("topic", "create", f"topic-{number:02}", *counts, "--timeout", "180", "--bootstrap-server", bootstrap)


def until_there(dump: Sequence[str], file: Path) -> None:
    """Read until each broker has the logs of its replicas."""
    while True:
        klamm(*dump)
        rows = json.loads(file.read_bytes())["partitions"]
        there = sum(None not in row["log_dirs"] for row in rows)
        say(f"{there:,} of {PARTITIONS:,} partitions have all their logs")
        if there == PARTITIONS:
            return
        time.sleep(1)


def compare(bootstrap: str, folder: Path) -> bool:
    """Print what each round took, and return whether reading is as cheap as it should be."""
    file = folder / "dump.json"
    dump = ("state", "dump", "--bootstrap-server", bootstrap, "--out", str(file))
    until_there(dump, file)
    ratios: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        topics, log_dirs = tool("TopicCommand", bootstrap), tool("LogDirsCommand", bootstrap)
        ours, theirs = klamm(*dump), topics + log_dirs
        say(f"kafka-topics {topics}; kafka-log-dirs {log_dirs}; klamm state dump {ours}")
        ratios.append((ours.elapsed / theirs.elapsed, ours.processor / theirs.processor))
    elapsed, processor = (median(column) for column in zip(*ratios, strict=True))
    parts = f"{elapsed:.2f} of the time of both tools, {processor:.2f} of their processor time"
    say(f"reading {PARTITIONS:,} partitions takes {parts}")
    plan = str(folder / "plan.json")
    cost = klamm("plan", "remove-brokers", "--brokers", "3", "--force", "--bootstrap-server", bootstrap, "--out", plan)
    moved = len(json.loads((folder / "plan.json").read_bytes())["partitions"])
    say(f"klamm plan remove-brokers, read and planned, {moved:,} partitions: {cost}")
    return bool(elapsed <= MOST)


async def measure(folder: Path, replicas: int) -> bool:
    """Run the cluster in a folder, and compare."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    async with kraft_cluster(folder, BROKERS, settings=_SETTINGS, heap="1g") as cluster:
        await trio.to_thread.run_sync(create, cluster.bootstrap, replicas)
        return await trio.to_thread.run_sync(compare, cluster.bootstrap, folder)


if __name__ == "__main__":
    parser = command.parser(__doc__)
    parser.add_argument("--replicas", type=int, default=2, help="the replicas of each partition (2)")
    arguments = parser.parse_args()
    for release in (jars.KRAFT, jars.RELEASE):
        if jars.fetched(release) is None:
            sys.exit(f"Kafka's jars are missing: python -m tests.kafka.jars {release} fetches them by Maven")
    with tempfile.TemporaryDirectory(prefix="klamm-", dir=_MEMORY if Path(_MEMORY).is_dir() else None) as place:
        is_cheap = trio.run(measure, Path(place), arguments.replicas)
    sys.exit(0 if is_cheap else f"more than {MOST} of the time of Kafka's tools")
