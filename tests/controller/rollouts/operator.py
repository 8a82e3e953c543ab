"""An operator of rollouts, on the bench of a controller."""

from __future__ import annotations

from typing import Any

from attrs import define

from controller.events import RolloutLook
from controller.node.alarms import first_alarms
from tests.controller.conftest import Bench
from transport.messages import (
    ChangeRolloutRequest,
    ChangeRolloutResponse,
    DescribeRolloutMovesRequest,
    DescribeRolloutMovesResponse,
    DescribeRolloutsRequest,
    DescribeRolloutsResponse,
    RolloutChanges,
    RolloutDescription,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    StartRolloutResponse,
    UploadRolloutRequest,
    UploadRolloutResponse,
)
from transport.metadata import TopicPartition
from transport.store import formats

ORIGIN, TARGET = (1, 2), (3, 2)


@define
class Operator:
    """An operator of the bench."""

    bench: Bench

    async def upload(self, *moves: RolloutMove, name: str = "monday", skips: bool = False) -> UploadRolloutResponse:
        """Upload a plan of one part."""
        request = UploadRolloutRequest(name, "digest", 0, moves, skips)
        return await self.bench.ask(request, UploadRolloutResponse)

    async def start(self, count: int, *, name: str = "monday", first: int = 0, **settings: Any) -> StartRolloutResponse:
        """Upload a plan that moves some partitions of the topic, and start it."""
        moves = [RolloutMove("orders", number, TARGET, size=100) for number in range(first, first + count)]
        assert (await self.upload(*moves, name=name)).left_out == ()
        request = StartRolloutRequest(name, "digest", count, RolloutSettings(**settings), "alice")
        return await self.bench.ask(request, StartRolloutResponse)

    async def order(self, order: RolloutOrder, *, name: str = "monday", **changes: Any) -> RolloutDescription | None:
        """Give an order."""
        request = ChangeRolloutRequest(name, order, RolloutChanges(**changes))
        return (await self.bench.ask(request, ChangeRolloutResponse)).rollout

    async def describe(self, name: str = "monday") -> RolloutDescription:
        """Describe a rollout."""
        [found] = (await self.bench.ask(DescribeRolloutsRequest((name,)), DescribeRolloutsResponse)).rollouts
        return found

    async def states(self, name: str = "monday") -> dict[int, str]:
        """Return the states of the moves, by partition, with the reasons."""
        found = await self.bench.ask(DescribeRolloutMovesRequest(name), DescribeRolloutMovesResponse)
        return {move.partition: move.state + (f": {move.why}" if move.why else "") for move in found.moves}

    def in_flight(self) -> list[int]:
        """Return the partitions that are being moved."""
        return sorted(tp.partition for tp in self.bench.context.reassigning)

    async def catch_up(self, *partitions: int) -> None:
        """Let the new replicas of partitions join the ISR."""
        for number in partitions or self.in_flight():
            tp = TopicPartition("orders", number)
            await self.bench.alter_isr(tp, *self.bench.context.assignment(tp).replicas)

    async def finish(self) -> None:
        """Let all moves come to their end."""
        while self.in_flight():
            await self.catch_up()

    async def fail_over(self) -> None:
        """Replace the controller."""
        await self.bench.fail_over()
        for _, event in first_alarms(self.bench.context):
            if isinstance(event, RolloutLook):
                await self.bench.handle(event)


async def settings(bench: Bench, path: str) -> dict[str, str]:
    """Read settings from the store."""
    return formats.decode_config(path, (await bench.znode(path)).data)
