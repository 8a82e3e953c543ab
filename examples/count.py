"""Run the counters of counter_service.py on three brokers, and count while the counters move to other brokers.

Start it with `python -m examples.count`; it needs neither Java nor ZooKeeper.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import trio

import klamm
from examples.counter_service import APIS, Add, CounterService
from transport.errors import ApiError
from transport.host import Host
from transport.messages import NewTopic, PartitionState, ReassignablePartition
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper
from transport.wire import WireError, open_connection


async def main() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        config = klamm.ControllerConfig(controller_id=1001)
        service = await nursery.start(partial(klamm.run, config, open_store=zookeeper.session))
        with tempfile.TemporaryDirectory() as directory:
            for broker_id in (1, 2, 3):
                await nursery.start(
                    run_counters, zookeeper, klamm.BrokerConfig(broker_id, Path(directory) / str(broker_id))
                )
            async with klamm.open_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
                await count_and_move(admin)
            nursery.cancel_scope.cancel()


async def run_counters(
    zookeeper: MemoryZooKeeper, config: klamm.BrokerConfig, *, task_status: trio.TaskStatus[None]
) -> None:
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        run = partial(
            klamm.run_broker, config, CounterService, store=store, network=TcpNetwork(), host=Host(), own_apis=APIS
        )
        await nursery.start(run)
        task_status.started()


async def count_and_move(admin: klamm.AdminClient | klamm.KafkaAdmin) -> None:
    while len((await admin.read_metadata()).brokers) < 3:
        await trio.sleep(0.01)
    await admin.create_topics([NewTopic("counters", 1, 2, assignments=((1, 2),))])
    for _ in range(10):
        await add(admin, "hits", 1)
    show(await state_of(admin), "10 hits counted")
    await admin.alter_partition_reassignments([ReassignablePartition("counters", 0, (3, 2))])
    counted, is_moving = 10, True
    while is_moving:
        await add(admin, "hits", 1)
        counted += 1
        is_moving = bool(await admin.list_partition_reassignments())
    show(await state_of(admin), "moved while it counted")
    print(f"{counted} hits counted, the counter stands at {await add(admin, 'hits', 0)}")


async def add(admin: klamm.AdminClient | klamm.KafkaAdmin, counter: str, amount: int) -> int:
    """Add to a counter on its current leader. A request without an answer is repeated, so it may count twice."""
    while True:
        try:
            return await add_once(admin, counter, amount)
        except (ApiError, WireError, LookupError) as error:
            print(f"trying again: {error}")
            await trio.sleep(0.05)


async def add_once(admin: klamm.AdminClient | klamm.KafkaAdmin, counter: str, amount: int) -> int:
    state = await state_of(admin)
    brokers = {broker.id: broker for broker in (await admin.read_metadata()).brokers}
    opening = partial(open_connection, TcpNetwork(), client_id="count", own_apis=APIS)
    async with opening(brokers[state.leader].host, brokers[state.leader].port) as connection:
        return await connection.call(Add(state.topic_id, counter, amount))


async def state_of(admin: klamm.AdminClient | klamm.KafkaAdmin) -> PartitionState:
    while not (states := (await admin.read_metadata(["counters"])).partitions):
        await trio.sleep(0.01)
    return states[0]


def show(state: PartitionState, what: str) -> None:
    print(f"{what}: leader {state.leader}, replicas {list(state.replicas)}, ISR {sorted(state.isr)}")


if __name__ == "__main__":
    trio.run(main)
