"""Expectations of every cluster of real brokers under our controller, whatever has happened to it."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Final

import trio

from tests.kafka.real_cluster import RealCluster, until
from tests.kafka.traffic import Written, read

OFFSETS: Final = "__consumer_offsets"
_ELECTED: Final = "successfully elected as the controller"


async def require_all_read(cluster: RealCluster, topic: str, *written: Written) -> None:
    """Let a consumer group read a topic: each record that was acknowledged is there once."""
    found = Counter(await read(cluster.bootstrap, topic, f"readers-of-{topic}"))
    acknowledged = [value for each in written for value in each.values]
    assert [error for each in written for error in each.errors] == []
    assert found.keys() >= set(acknowledged)
    assert set(found.values()) == {1}
    waited = f"one waited for {max(each.longest_wait() for each in written):.1f} s"
    sys.stdout.write(f"{topic}: {len(acknowledged)} acknowledged, {waited}, {found.total()} read\n")


def elections(cluster: RealCluster) -> int:
    """Return how often a broker became the controller."""
    return sum(broker.log.read_text().count(_ELECTED) for broker in cluster.brokers.values())


async def until_elected(cluster: RealCluster, times: int) -> None:
    """Wait until brokers have logged that one became the controller, so many times since their first start.

    The broker writes the znodes first, and a busy machine may show them long before the log.
    """

    async def have_logged() -> bool:
        await trio.lowlevel.checkpoint()
        return elections(cluster) >= times

    await until(have_logged)
    assert elections(cluster) == times


def require_standbys(cluster: RealCluster) -> None:
    """Require that no broker has ever been the controller."""
    assert elections(cluster) == 0
