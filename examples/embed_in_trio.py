"""Run a controller in a trio program, with two brokers, a topic, and an observer that sees every commit.

Start it with `python examples/embed_in_trio.py`; it needs neither Java nor ZooKeeper.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import trio

import klamm
from broker.reference.run import run_reference_broker
from transport.host import Host
from transport.messages import NewTopic
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper


class PrintCommits(klamm.Observer):
    """Print each commit. The controller calls it in its own task."""

    def committed(self, commit: klamm.CommittedRound) -> None:
        for state in commit.partitions:
            print(f"{commit.event} {commit.round}: {state.tp} is led by {state.leader}")


async def main() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    config = klamm.ControllerConfig(controller_id=1001)
    async with trio.open_nursery() as nursery:
        run = partial(klamm.run, config, open_store=zookeeper.session, observer=PrintCommits())
        service = await nursery.start(run)
        with tempfile.TemporaryDirectory() as directory:
            for broker_id in (1, 2):
                await nursery.start(
                    run_broker, zookeeper, klamm.BrokerConfig(broker_id, Path(directory) / str(broker_id))
                )
            async with klamm.open_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
                while len((await admin.read_metadata()).brokers) < 2:
                    await trio.sleep(0.01)
                await admin.create_topics([NewTopic("orders", partitions=1, replication_factor=2)])
                while not (await admin.read_metadata()).partitions:
                    await trio.sleep(0.01)
            nursery.cancel_scope.cancel()


async def run_broker(
    zookeeper: MemoryZooKeeper, config: klamm.BrokerConfig, *, task_status: trio.TaskStatus[None]
) -> None:
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        await nursery.start(partial(run_reference_broker, config, store=store, network=TcpNetwork(), host=Host()))
        task_status.started()


if __name__ == "__main__":
    trio.run(main)
