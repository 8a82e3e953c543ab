"""The office on a ZooKeeper whose znodes only Kafka's brokers may change: SASL, and ACLs by zookeeper.set.acl."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.kafka.real_brokers import real_broker
from tests.kafka.test_handover import BROKER, OURS, handed, is_kafkas, refused, until
from tests.kit.jaas import CREDENTIALS, USER, java_options
from tests.kit.officer import Officer
from transport.store import paths
from transport.store.acls import identities
from transport.store.security import ZooKeeperSecurity
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

US = ZooKeeperSecurity(CREDENTIALS, sasl=True)


@pytest.fixture
async def secured(
    kafka_jars: Path, zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """Run a ZooKeeper and a broker that know the same password, and give the address of their cluster."""
    assert zookeeper, "the fixture tells that there is a Java to run a server with SASL"
    monkeypatch.setenv("JDK_JAVA_OPTIONS", java_options(tmp_path))
    async with development_zookeeper(tmp_path / "zookeeper") as server:
        address = f"{server.address}/secured"
        async with real_broker(kafka_jars, address, BROKER, tmp_path, {"zookeeper.set.acl": "true"}):
            monkeypatch.delenv("JDK_JAVA_OPTIONS")
            yield address


@pytest.mark.soak
async def test_the_office_of_a_secured_cluster(secured: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLAMM_ZOOKEEPER_CREDENTIALS", CREDENTIALS)
    monkeypatch.setenv("KLAMM_ZOOKEEPER_SASL_CLIENT", "true")
    async with open_zookeeper(secured, security=US) as store, trio.open_nursery() as nursery:
        await until(partial(is_kafkas, store))
        officer = Officer(store, OURS)
        await nursery.start(officer.run)
        assert (await handed("take-over", secured))["controller"] == OURS
        theirs, *ours = await store.acls([paths.broker(BROKER), paths.CONTROLLER, paths.OFFICE_LOCK])
        assert theirs is not None
        assert identities(theirs) == {f"sasl:{USER}"}
        assert ours == [theirs, theirs]
        monkeypatch.setenv("KLAMM_ZOOKEEPER_CREDENTIALS", f"{USER}:wrong")
        assert "refused our credentials" in await refused("release", secured)
        monkeypatch.delenv("KLAMM_ZOOKEEPER_SASL_CLIENT")
        monkeypatch.delenv("KLAMM_ZOOKEEPER_CREDENTIALS")
        assert "/klamm/released may not be touched" in await refused("release", secured)
        monkeypatch.setenv("KLAMM_ZOOKEEPER_CREDENTIALS", CREDENTIALS)
        monkeypatch.setenv("KLAMM_ZOOKEEPER_SASL_CLIENT", "true")
        assert (await handed("release", secured))["kafka_controller"] == BROKER
        nursery.cancel_scope.cancel()
