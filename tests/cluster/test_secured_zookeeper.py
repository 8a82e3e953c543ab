"""A cluster of processes on a secured ZooKeeper: TLS, an identity, and ACLs on everything that it creates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from klamm.cli.demo.scenario import ORDERS
from tests.cluster.running import CONTROLLER, RealCluster
from tests.kit.certificates import authority
from transport.store import paths
from transport.store.protocol import Delete, Set, StoreError
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import ServerTls, development_zookeeper

SECRET = "the-secret"  # noqa: S105
PAIR = (1, 2)
RECORDS = 20


def arm(monkeypatch: pytest.MonkeyPatch, directory: Path) -> ServerTls:
    """Put what secures the connections of all processes into the environment; return the server's side of it."""
    known = authority(directory / "authority")
    credentials = directory / "credentials"
    credentials.write_text(f"klamm:{SECRET}")
    for name, value in {
        "CREDENTIALS_FILE": credentials,
        "SET_ACL": "true",
        "SSL_CLIENT_ENABLE": "true",
        "SSL_KEYSTORE_LOCATION": known.issue("klamm", "127.0.0.1"),
        "SSL_TRUSTSTORE_LOCATION": known.certificate,
    }.items():
        monkeypatch.setenv(f"KLAMM_ZOOKEEPER_{name}", str(value))
    return ServerTls(known.issue("server", "127.0.0.1"), known.certificate)


@pytest.mark.requirement("D1", "D8", "D10")
async def test_a_cluster_on_a_secured_zookeeper(
    zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert zookeeper, "the fixture tells that there is a Java to run a server with TLS"
    tls = arm(monkeypatch, tmp_path)
    async with development_zookeeper(tmp_path / "zookeeper", tls=tls) as server:
        address = f"{server.secure_address}/secured"
        flags = flags_of_environment(tmp_path)
        async with (
            RealCluster.running(address, tmp_path, *CONTROLLER, *flags) as cluster,
            open_zookeeper(f"{server.address}/secured") as stranger,
        ):
            for broker_id in PAIR:
                where = ("--log-dir", str(tmp_path / f"broker-{broker_id}"))
                cluster.start(broker_id, "klamm", "broker", "run", *where, *flags)
            await cluster.until_live(PAIR)
            await cluster.create_topic(ORDERS.topic, PAIR)
            load = await cluster.load(ORDERS.topic)
            await load.fill(RECORDS, 10)
            assert len(await load.read_back()) == RECORDS
            everything = [paths.topic(ORDERS.topic), paths.partition_state(ORDERS), paths.CONTROLLER_EPOCH]
            for path in (*everything, paths.broker(1), paths.CONTROLLER):
                with pytest.raises(StoreError, match="may not be touched"):
                    await stranger.multi([Set(path, b"", -1)])
            with pytest.raises(StoreError, match="may not be touched"):
                await stranger.multi([Delete(paths.CONTROLLER)])
            shown = json.loads((await cluster.klamm("state", "dump"))[1])
            assert [(p["topic"], p["leader"]) for p in shown["partitions"]] == [(ORDERS.topic, 1)]
        logs = read_logs(tmp_path)
        assert len(logs) == 1 + len(PAIR)
        assert not any(SECRET in log for log in logs)


def read_logs(directory: Path) -> list[str]:
    return [path.read_text(errors="replace") for path in directory.glob("*.log")]


def flags_of_environment(directory: Path) -> list[str]:
    """Return the flags of a service that say the same as the environment, which services take secrets from alone."""
    at = directory / "authority"
    return [
        *("--zookeeper-set-acl", "--zookeeper-ssl-client-enable"),
        *("--zookeeper-credentials-file", str(directory / "credentials")),
        *("--zookeeper-ssl-keystore-location", str(at / "klamm.pem")),
        *("--zookeeper-ssl-truststore-location", str(at / "ca.pem")),
    ]
