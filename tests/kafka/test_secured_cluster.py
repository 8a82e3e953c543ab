"""Three brokers and our controllers that trust nobody without proof: what they do in the open, they do here too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kafka import jars
from tests.kafka.cluster_security import ClusterSecurity
from tests.kafka.real_cluster import RealCluster, real_cluster
from tests.kafka.test_real_cluster import fail_over, live
from tests.kit.certificates import authority
from transport.metadata import SecurityProtocol

pytestmark = pytest.mark.soak


@pytest.fixture(params=[SecurityProtocol.SASL_SSL, SecurityProtocol.SSL], ids=["scram", "certificates"])
async def secured(
    request: pytest.FixtureRequest, kafka_jars: Path, zookeeper: str, tmp_path: Path
) -> AsyncIterator[RealCluster]:
    """Give the test three brokers with Kafka's ACLs under a controller that was there before them."""
    assert kafka_jars.name == jars.RELEASE
    security = ClusterSecurity(request.param, authority(tmp_path / "known"))
    async with real_cluster(f"{zookeeper}/real-{tmp_path.name}", tmp_path, security=security) as running:
        yield running


async def test_secured_brokers_live_under_our_controller(secured: RealCluster) -> None:
    await live(secured)


async def test_secured_transactions_go_on_when_the_controller_and_a_leader_die(secured: RealCluster) -> None:
    await fail_over(secured)
