"""A controller that serves its page, on a store in memory, with brokers that are registered but not there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import trio
from attrs import frozen

from controller.node.service import ControllerService
from tests.kit.service import Controllers, until
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ChangeRolloutRequest,
    ReassignablePartition,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    UploadRolloutRequest,
)
from transport.metadata import BrokerRegistration, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, MetadataStore


@frozen
class LivePage:
    """A cluster whose brokers do what the test says."""

    service: ControllerService
    store: MetadataStore

    @classmethod
    @asynccontextmanager
    async def of(cls, controllers: Controllers, brokers: Sequence[int]) -> AsyncIterator[Self]:
        """Start the controller with these brokers."""
        service = await controllers.start_active(metrics_port=0, host="127.0.0.1")
        async with controllers.memory.session() as store:
            cluster = cls(service, store)
            for broker_id in brokers:
                broker = BrokerRegistration(broker_id, "127.0.0.1", 1, -1, rack=f"rack {broker_id % 2}")
                await store.multi([Create(paths.broker(broker_id), formats.encode_broker(broker, 0), ephemeral=True)])
            await until(lambda: service.office is not None and len(service.office.context.brokers) == len(brokers))
            yield cluster

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def port(self) -> int:
        """The port of the page."""
        assert self.service.metrics_port is not None
        return self.service.metrics_port

    async def create_topic(self, name: str, *replicas: Sequence[int]) -> None:
        """Create a topic, and wait until its partitions have leaders."""
        partitions = {number: ReplicaAssignment(tuple(item)) for number, item in enumerate(replicas)}
        znode = formats.encode_topic(formats.TopicZnode(partitions, "id-of-" + name))
        await self.store.multi([Create(paths.topic(name), znode)])
        assert self.service.office is not None
        led = self.service.office.context.leadership
        await until(lambda: all(TopicPartition(name, number) in led for number in partitions))

    async def kill(self, broker_id: int) -> None:
        """Take a broker's registration away."""
        await self.store.multi([Delete(paths.broker(broker_id))])

    async def move(self, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
        """Ask for a move."""
        request = AlterPartitionReassignmentsRequest((ReassignablePartition(*tp, replicas),))
        await self.service.answer(request)

    async def roll_out(self, name: str, *moves: RolloutMove, **settings: Any) -> None:
        """Start a rollout that the controller carries out."""
        await self.service.answer(UploadRolloutRequest(name, "digest", 0, moves))
        await self.service.answer(StartRolloutRequest(name, "digest", len(moves), RolloutSettings(**settings), "alice"))

    async def order(self, name: str, order: RolloutOrder) -> None:
        """Give an order to a rollout."""
        await self.service.answer(ChangeRolloutRequest(name, order, by="alice"))

    async def catch_up(self, tp: TopicPartition, *isr: int) -> None:
        """Let the leader of a partition ask for an ISR."""
        assert self.service.office is not None
        context = self.service.office.context
        now, topic_id = context.leadership[tp], context.topic_id(tp.topic)
        item = AlterPartitionItem(tp.topic, topic_id, tp.partition, now.leader_epoch, isr, now.partition_epoch)
        await self.service.answer(AlterPartitionRequest(now.leader, context.brokers[now.leader].epoch, (item,)))

    async def snapshot(self, is_wanted: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """Return the first snapshot sent to a browser that is wanted, for example the present one."""
        with trio.fail_after(10):
            async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
                await stream.send_all(b"GET /events HTTP/1.0\r\n\r\n")
                received = b""
                while chunk := await stream.receive_some(65536):
                    *frames, received = (received + chunk).split(b"\n\n")
                    told: list[dict[str, Any]] = [
                        json.loads(data) for frame in frames if (data := frame.partition(b"data: ")[2])
                    ]
                    for snapshot in filter(is_wanted, told):
                        return snapshot
        raise AssertionError("the controller sent no such snapshot")
