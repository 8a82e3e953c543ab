"""Services that start from one klamm.toml, and settings that change while they run: processes on ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.cli.demo.scenario import ORDERS
from tests.cluster.running import CONTROLLER, RealCluster
from tests.cluster.waiting import until
from tests.kit.service import error_code
from transport.errors import ErrorCode
from transport.messages import ProduceRequest
from transport.network import TcpNetwork
from transport.wire import open_connection

BROKERS = (1, 2)
TOPIC = ("--entity-type", "topics", "--entity-name", ORDERS.topic)
FILE = """
[controller]
zookeeper.connect = "{0}"
[broker]
"zookeeper.connect" = "{0}"
replica.fetch.wait.max.ms = 100
log.dir = "never used: the flag wins"
"""


@pytest.mark.requirement("D8")
async def test_min_insync_replicas_changes_while_the_cluster_runs(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/settings-at-run-time"
    file = tmp_path / "klamm.toml"
    file.write_text(FILE.format(address), encoding="utf-8")
    async with RealCluster.running(address, tmp_path, *CONTROLLER, "--config", str(file)) as cluster:
        for broker_id in BROKERS:
            data = ("--log-dir", str(tmp_path / f"broker-{broker_id}"), "--controlled-shutdown-max-retries", "1")
            cluster.start(broker_id, "klamm", "broker", "run", "--config", str(file), *data)
        await cluster.until_live(BROKERS)

        async def klamm(*arguments: str) -> str:
            return (await cluster.klamm(*arguments))[1]

        async def alter(*change: str) -> None:
            assert await klamm("config", "alter", *TOPIC, *change) == f"altered the settings of topic {ORDERS.topic}\n"

        async def produced() -> ErrorCode:
            metadata = await cluster.admin.read_metadata([ORDERS.topic])
            leader = next(broker for broker in metadata.brokers if broker.id == metadata.partitions[0].leader)
            async with open_connection(TcpNetwork(), leader.host, leader.port, client_id="test") as connection:
                return await error_code(connection, ProduceRequest(*ORDERS, -1, 20_000, (b"a record",)))

        async def is_refused() -> bool:
            return await produced() is ErrorCode.NOT_ENOUGH_REPLICAS

        async def is_granted() -> bool:
            return await produced() is ErrorCode.NONE

        async def one_is_left() -> bool:
            return (await cluster.states())[0].isr == (1,)

        new = ("--replica-assignment", "1:2", "--config", "min.insync.replicas=2")
        assert await klamm("topic", "create", ORDERS.topic, *new) == f"created topic {ORDERS.topic}\n"
        refused = await klamm("config", "alter", *TOPIC, "--add-config", "min.insinc.replicas=1")
        assert refused == "Error: there is no setting min.insinc.replicas: did you mean min.insync.replicas?\n"
        await until(is_granted)
        await cluster.kill(2)
        await until(one_is_left)
        assert await produced() is ErrorCode.NOT_ENOUGH_REPLICAS
        await alter("--add-config", "min.insync.replicas=1")
        await until(is_granted)
        await alter("--add-config", "min.insync.replicas=2")
        await until(is_refused)
        # Without a value of its own the topic inherits what the brokers were started with.
        await alter("--delete-config", "min.insync.replicas")
        await until(is_granted)
        brokers = ("--entity-type", "brokers", "--entity-default")
        await klamm("config", "alter", *brokers, "--add-config", "min.insync.replicas=2")
        await until(is_refused)
        described = await klamm("config", "describe", *TOPIC, "-o", "json")
        assert '"source": "DYNAMIC_DEFAULT_BROKER_CONFIG"' in described
