"""The jars of Apache Kafka, without which the tests on real brokers are skipped, and clusters of such brokers."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kafka import jars, kraft_cluster
from tests.kafka.real_cluster import RealCluster, real_cluster
from tests.kafka.releases import OLDER, RELEASES, require_jars

NEED_JARS = frozenset({"kafka_jars", "needs_kraft", "release", "tools"})
"""The fixtures with which a test needs brokers or tools of Apache Kafka; others carry the mark themselves."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the tests on real brokers to `make kafka-test`, before any is chosen by its marks."""
    for item in items:
        if not NEED_JARS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.real_kafka)


@pytest.fixture
def kafka_jars() -> Path:
    """Give the test the folder of a release's jars; tasks of a test lose the reason of a skip, so it is done here."""
    found = jars.fetched(jars.RELEASE)
    if found is None:
        pytest.skip(f"no jars of Kafka to test on: python -m tests.kafka.jars {jars.RELEASE}")
    return found


@pytest.fixture
def needs_kraft() -> None:
    """Skip the test without the jars of KRaft's release."""
    require_jars(kraft_cluster.RELEASE)


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """Give the test a kind of cluster of Kafka's."""
    name: str = request.param
    # Any other name would be skipped, as a release without jars.
    assert name in {jars.RELEASE, *OLDER}
    require_jars(name)
    return name


@pytest.fixture
async def cluster(zookeeper: str, tmp_path: Path, release: str) -> AsyncIterator[RealCluster]:
    """Give the test three brokers under a controller that was there before them."""
    async with real_cluster(f"{zookeeper}/real-{tmp_path.name}", tmp_path, release=release) as running:
        yield running


@pytest.fixture
def tools(kafka_jars: Path) -> Path:
    """Give the test the jars of the tools."""
    if not jars.has_tools(jars.RELEASE):
        pytest.skip(f"no tools of Kafka to test with: python -m tests.kafka.jars {jars.RELEASE}")
    if shutil.which("javac") is None:
        pytest.skip("no JDK to compile the program that runs Kafka's tools: apt-get install openjdk-17-jdk-headless")
    return kafka_jars
