"""A cluster of processes whose ZooKeeper is secured: TLS, an identity, and ACLs on all that it creates."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import trio

from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import CONTROLLERS
from klamm.cli.demo.load import Load
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.waiting import until, until_controller
from tests.kit.certificates import authority
from transport.messages import NewTopic
from transport.network import TcpNetwork
from transport.store import paths
from transport.store.protocol import Delete, Set, StoreError
from transport.store.security import security_of_environment
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
        security = security_of_environment()
        async with (
            open_zookeeper(address, security=security) as store,
            open_zookeeper(f"{server.address}/secured") as stranger,
            stopping(ProcessCluster(store, tmp_path, address)) as cluster,
        ):
            flags = flags_of_environment(tmp_path)
            cluster.start(CONTROLLERS[0], "klamm", "controller", "run", *flags)
            for broker_id in PAIR:
                where = ("--log-dir", str(tmp_path / f"broker-{broker_id}"))
                cluster.start(broker_id, "klamm", "broker", "run", *where, *flags)
            await until_controller(store, CONTROLLERS[0])
            admin = AdminClient(TcpNetwork(), [], store, 60)

            async def both_live() -> bool:
                return [broker.id for broker in (await admin.read_metadata()).brokers] == [*PAIR]

            await until(both_live)
            await admin.create_topics([NewTopic(ORDERS.topic, 1, 2, (PAIR,))])

            async def is_led() -> bool:
                return await stranger.read([paths.partition_state(ORDERS)]) != [None]

            await until(is_led)
            brokers = (await admin.read_metadata()).brokers
            load = Load(TcpNetwork(), [(b.host, b.port) for b in brokers], ORDERS.topic)
            await load.fill(RECORDS, 10)
            assert len(await load.read_back()) == RECORDS
            everything = [paths.topic(ORDERS.topic), paths.partition_state(ORDERS), paths.CONTROLLER_EPOCH]
            for path in (*everything, paths.broker(1), paths.CONTROLLER):
                with pytest.raises(StoreError, match="may not be touched"):
                    await stranger.multi([Set(path, b"", -1)])
            with pytest.raises(StoreError, match="may not be touched"):
                await stranger.multi([Delete(paths.CONTROLLER)])
            dump = [sys.executable, "-m", "klamm", "state", "dump", "--zookeeper", address]
            shown = json.loads((await trio.run_process(dump, capture_stdout=True)).stdout)
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
