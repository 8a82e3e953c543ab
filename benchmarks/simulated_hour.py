"""The processor time of one hour of a simulated cluster under steady load, on one core.

Controllers, brokers and their messages are real, and every invariant is checked at every step. A follower's fetch waits
5 s for records, ten times as long as Kafka's default, because an idle cluster costs as much as its fetches.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

import structlog
import trio

from benchmarks.kit import figures
from simulator.cluster import simulated_cluster
from simulator.scheduling import run
from simulator.settings import Settings
from transport.metadata import TopicPartition

BROKERS: Final = 12
TOPICS: Final = 10
PARTITIONS: Final = 50
"""The number in each topic."""

REPLICATION_FACTOR: Final = 3
RECORDS_PER_SECOND: Final = 2.0
"""The rate of records with acks=all, written one by one to all partitions in turn."""

HOUR: Final = 3600.0
LIMIT_SECONDS: Final = 60.0


async def simulate(seconds: float) -> int:
    """Create the topics and write to them for `seconds`; return the number of acknowledged records."""
    async with simulated_cluster(Settings(brokers=BROKERS, fetch_wait=5.0)) as cluster:
        names = [f"topic-{number}" for number in range(TOPICS)]
        for name in names:
            await cluster.create_topic(name, partitions=PARTITIONS, replication_factor=REPLICATION_FACTOR)
        partitions = [TopicPartition(name, number) for number in range(PARTITIONS) for name in names]
        cluster.load.start("producer", partitions, RECORDS_PER_SECOND)
        await trio.sleep_until(seconds)
        return cluster.load.acknowledged


def main() -> None:
    """Print the cost of the hour; end with exit code 1 if it is above the limit."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    acknowledged = run(lambda: simulate(HOUR), seed=1)
    cost = time.process_time()
    print(f"{BROKERS} brokers, {TOPICS * PARTITIONS} partitions of {REPLICATION_FACTOR} replicas")
    print(f"{acknowledged} records acknowledged in {HOUR:.0f} s, {cost:.1f} s of processor time: {HOUR / cost:.0f} : 1")
    figures.note("simulated hour", "processor, s", cost)
    if cost > LIMIT_SECONDS:
        sys.exit(f"an hour should cost {LIMIT_SECONDS:.0f} s at most")


if __name__ == "__main__":
    main()
