"""Three brokers and our controllers that trust nobody without proof: what they do in the open, they do here too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kafka import jars
from tests.kafka.cluster_security import ClusterSecurity
from tests.kafka.real_cluster import AS_USUAL, RealCluster, Starting, real_cluster
from tests.kafka.test_auto_created_topics import create_without_a_controller
from tests.kafka.test_real_cluster import fail_over, live
from tests.kafka.test_real_faults import LONG_SESSIONS, elect_uncleanly, return_after_faults
from tests.kit.certificates import authority
from transport.metadata import SecurityProtocol
from transport.store.zookeeper import open_zookeeper

with_long_sessions = pytest.mark.parametrize("starting", [LONG_SESSIONS], ids=["long"])
pytestmark = pytest.mark.soak


@pytest.fixture
def starting() -> Starting:
    """Start the processes as usual, unless the test says how."""
    return AS_USUAL


@pytest.fixture(params=[SecurityProtocol.SASL_SSL, SecurityProtocol.SSL], ids=["scram", "certificates"])
async def secured(
    request: pytest.FixtureRequest, kafka_jars: Path, zookeeper: str, tmp_path: Path, starting: Starting
) -> AsyncIterator[RealCluster]:
    """Give the test three brokers with Kafka's ACLs under a controller that was there before them."""
    assert kafka_jars.name == jars.RELEASE
    security = ClusterSecurity(request.param, authority(tmp_path / "known"))
    address = f"{zookeeper}/real-{tmp_path.name}"
    async with real_cluster(address, tmp_path, security=security, starting=starting) as running:
        yield running


async def test_secured_brokers_live_under_our_controller(secured: RealCluster) -> None:
    await live(secured)


async def test_secured_transactions_go_on_when_the_controller_and_a_leader_die(secured: RealCluster) -> None:
    await fail_over(secured)


async def test_secured_brokers_create_topics_while_no_controller_is_alive(secured: RealCluster) -> None:
    async with open_zookeeper(secured.zookeeper) as store:
        await create_without_a_controller(secured, store)


@with_long_sessions
async def test_secured_brokers_return_within_their_session_and_without_a_log_directory(secured: RealCluster) -> None:
    await return_after_faults(secured)


@with_long_sessions
async def test_an_unclean_election_of_secured_brokers_is_allowed_or_not(secured: RealCluster) -> None:
    await elect_uncleanly(secured)
