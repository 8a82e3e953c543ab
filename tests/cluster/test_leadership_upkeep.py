"""Leaders when brokers stop and when administrators request elections: processes on ZooKeeper."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from attrs import define, field

from klamm.cli.demo.clusters import CONTROLLERS, log_dir
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.running import CONTROLLER, RealCluster
from tests.cluster.waiting import until
from transport.errors import ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    BrokerEndpoint,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    MetadataRequest,
    PartitionState,
)
from transport.metadata import NO_LEADER, LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Create, Znode
from transport.wire import open_connection

BROKERS = (1, 2, 3)


@define
class Upkeep(RealCluster):
    """Three brokers with one partition."""

    starts: Counter[int] = field(factory=Counter)

    def start_brokers(self, ids: Iterable[int] = BROKERS) -> None:
        super().start_brokers(ids)
        self.starts.update(ids)

    async def until_led(self, leader: int, isr: Sequence[int]) -> LeaderAndIsr:
        """Wait until a broker leads with these in the ISR, whatever their order; return the state."""

        async def is_led() -> bool:
            state = await self.state()
            return (state.leader, sorted(state.isr)) == (leader, sorted(isr))

        await until(is_led)
        return await self.state()

    async def lose_the_isr(self, *, survivor: int) -> None:
        """Let all brokers die, 1 as the last member of the ISR, and only the `survivor` come back."""
        await self.kill(2)
        await self.kill(3)
        await self.until_led(1, (1,))
        await self.kill(1)
        await self.until_led(NO_LEADER, (1,))
        self.start_brokers([survivor])
        await self.until_live([survivor])
        assert (await self.state()).leader == NO_LEADER

    async def znodes(self) -> tuple[Znode, Znode]:
        """Return those of the topic and of the partition's state."""
        return await self.znode(paths.topic(ORDERS.topic)), await self.znode(paths.partition_state(ORDERS))

    async def elect_in_order(self, *replicas: int) -> ErrorCode:
        [outcome] = await self.admin.elect_leaders(ElectionType.PREFERRED, orders={ORDERS: replicas})
        return outcome.error

    async def until_brokers_know(self, replicas: tuple[int, ...], leader: int) -> None:
        """Wait until every broker tells its clients so."""
        brokers = (await self.admin.read_metadata()).brokers

        async def know() -> bool:
            said = [await _ask(broker) for broker in brokers]
            return all([(s.replicas, s.leader) for s in states] == [(replicas, leader)] for states in said)

        await until(know)

    async def terminate(self, broker_id: int) -> str:
        """Stop a broker by SIGTERM and wait for its end; return what it logged."""

        async def has_started() -> bool:
            return self.log(broker_id).count("listens on") == self.starts[broker_id]

        await until(has_started)
        process = self.processes.pop(broker_id)
        process.send_signal(signal.SIGTERM)
        with trio.fail_after(60):
            while process.poll() is None:
                await trio.sleep(0.02)
        assert process.returncode == 0
        return self.log(broker_id)

    async def relief(self, number: int) -> str:
        """Wait for a controlled shutdown, counted from 1; return what it changed, as the controller's log tells."""
        found: list[str] = []

        async def is_told() -> bool:
            changes = re.findall(r" changed .*during=ControlledShutdown (.*) seconds=", self.log(CONTROLLERS[0]))
            found.extend(changes[number - 1 :])
            return bool(found)

        await until(is_told)
        return found[0]


async def _ask(broker: BrokerEndpoint) -> tuple[PartitionState, ...]:
    """Return what a broker tells of the topic, nothing if it has not heard of it yet."""
    async with open_connection(TcpNetwork(), broker.host, broker.port, client_id="test") as connection:
        return (await connection.call(MetadataRequest((ORDERS.topic,)))).partitions


@asynccontextmanager
async def upkeep(address: str, data_dir: Path, *settings: str) -> AsyncIterator[Upkeep]:
    """Run a cluster whose leaders stay where they are, unless the controller's settings say otherwise."""
    settings = settings or ("--no-auto-leader-rebalance-enable",)
    async with Upkeep.running(address, data_dir, *CONTROLLER, *settings, brokers=BROKERS) as cluster:
        await cluster.create_topic(ORDERS.topic, BROKERS)
        yield cluster


@pytest.mark.requirement("D2", "D4", "D6")
async def test_brokers_that_are_terminated_are_relieved_first_as_long_as_others_can_lead(
    zookeeper: str, tmp_path: Path
) -> None:
    async with upkeep(f"{zookeeper}/terminated", tmp_path) as cluster:
        assert "stops though" not in await cluster.terminate(3)
        assert "isrs=1" in await cluster.relief(1)
        assert (await cluster.until_led(1, (1, 2))).leader_epoch == 1
        assert "stops though" not in await cluster.terminate(2)
        assert "isrs=1" in await cluster.relief(2)
        assert (await cluster.until_led(1, (1,))).leader_epoch == 2
        cluster.start_brokers([2])
        await cluster.until_led(1, (1, 2))
        assert "stops though" not in await cluster.terminate(1)
        assert "leaders=1" in await cluster.relief(3)
        # The election alone: the end of the registration finds nothing more to do.
        assert (await cluster.until_led(2, (2,))).leader_epoch == 3
        assert f"can lead {ORDERS}" in await cluster.terminate(2)
        assert (await cluster.until_led(NO_LEADER, (2,))).leader_epoch == 4


@pytest.mark.requirement("C1", "C4", "D4")
async def test_elections_that_administrators_ask_for(zookeeper: str, tmp_path: Path) -> None:
    async with upkeep(f"{zookeeper}/elections", tmp_path) as cluster:
        await cluster.terminate(1)
        await cluster.until_led(2, (2, 3))
        [refused] = await cluster.admin.elect_leaders(ElectionType.PREFERRED, [ORDERS])
        assert refused.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        cluster.start_brokers([1])
        await cluster.until_led(2, BROKERS)
        await cluster.store.multi([Create(paths.PREFERRED_REPLICA_ELECTION, formats.encode_partitions([ORDERS]))])
        await cluster.until_led(1, BROKERS)
        await cluster.until_gone(paths.PREFERRED_REPLICA_ELECTION)

        await cluster.terminate(1)
        cluster.start_brokers([1])
        await cluster.until_led(2, BROKERS)
        [elected] = await cluster.admin.elect_leaders(ElectionType.PREFERRED)
        assert elected.error is ErrorCode.NONE
        await cluster.until_led(1, BROKERS)

        await cluster.lose_the_isr(survivor=3)
        [elected] = await cluster.admin.elect_leaders(ElectionType.UNCLEAN, [ORDERS])
        assert elected.error is ErrorCode.NONE
        state = await cluster.until_led(3, (3,))
        assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING
        cluster.start_brokers([1, 2])
        whole = await cluster.until_led(3, BROKERS)
        assert whole.leader_recovery_state is LeaderRecoveryState.RECOVERED


@pytest.mark.soak
@pytest.mark.requirement("C4", "D9")
async def test_what_settings_say_of_leadership(zookeeper: str, tmp_path: Path) -> None:
    interval = ("--leader-imbalance-check-interval-seconds", "1")
    async with upkeep(f"{zookeeper}/settings", tmp_path, *interval) as cluster:
        await cluster.terminate(1)
        await cluster.until_led(2, (2, 3))
        cluster.start_brokers([1])
        # Nobody asks: the preferred leader leads again by itself.
        await cluster.until_led(1, BROKERS)

        await cluster.lose_the_isr(survivor=2)
        setting = AlterableConfig("unclean.leader.election.enable", ConfigOperation.SET, "true")
        topic = ConfigResource(ConfigResourceType.TOPIC, ORDERS.topic)
        [altered] = await cluster.admin.incremental_alter_configs([AlterConfigsResource(topic, (setting,))])
        assert altered.error is ErrorCode.NONE
        state = await cluster.until_led(2, (2,))
        assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING


@pytest.mark.requirement("C2", "C3")
async def test_an_administrator_names_the_leader_and_changes_orders(zookeeper: str, tmp_path: Path) -> None:
    async with upkeep(f"{zookeeper}/orders", tmp_path) as cluster:
        before = await cluster.until_led(1, BROKERS)
        assert await cluster.elect_in_order(3, 1, 2) is ErrorCode.NONE
        elected = await cluster.state()
        assert await cluster.assignment() == ReplicaAssignment((3, 1, 2))
        assert (elected.leader, elected.leader_epoch) == (3, before.leader_epoch + 1)
        assert elected.controller_epoch == before.controller_epoch
        topic, state = await cluster.znodes()
        assert topic.stat.mzxid == state.stat.mzxid, "one transaction"
        await cluster.until_brokers_know((3, 1, 2), 3)

        # A reassignment to the same replicas: their order and no more.
        assert (await cluster.reassign((2, 3, 1))).error is ErrorCode.NONE
        assert await cluster.assignment() == ReplicaAssignment((2, 3, 1))
        assert ((await cluster.state()).leader, sorted((await cluster.state()).isr)) == (3, list(BROKERS))
        await cluster.until_brokers_know((2, 3, 1), 3)
        assert all((log_dir(tmp_path, id_) / str(ORDERS)).exists() for id_ in BROKERS)

        await cluster.kill(1)
        await cluster.until_led(3, (2, 3))
        untouched = await cluster.znodes()
        assert await cluster.elect_in_order(1, 2, 3) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert await cluster.elect_in_order(2, 3) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await cluster.elect_in_order(2, 3, 4) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await cluster.znodes() == untouched
        # A dead replica may stand anywhere but first.
        assert await cluster.elect_in_order(2, 1, 3) is ErrorCode.NONE
        await cluster.until_led(2, (2, 3))

        # A move to a broker that does not come along goes on as long as we like.
        cluster.start_brokers([4])
        await cluster.until_live([2, 3, 4])
        cluster.processes[4].send_signal(signal.SIGSTOP)
        assert (await cluster.reassign((4, 2, 3))).error is ErrorCode.NONE
        await cluster.kill(4)
        await cluster.until_live([2, 3])
        untouched = await cluster.znodes()
        assert await cluster.elect_in_order(3, 2, 4, 1) is ErrorCode.REASSIGNMENT_IN_PROGRESS
        assert await cluster.znodes() == untouched
