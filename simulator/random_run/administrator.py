"""The administrator of a random run, who takes every answer for what it is."""

from __future__ import annotations

from typing import Final

import trio
from attrs import frozen

from controller.admin.client import ClusterUnreachable
from simulator import administration
from simulator.cluster import ADMIN, SimulatedCluster, partition_named
from simulator.random_run.actions import Alter, CreateTopic, DeleteTopic, Elect, Grow, NameLeader, Reassign, Request
from simulator.random_run.coverage import Coverage
from transport.errors import ApiError, ErrorCode
from transport.messages import ElectionType
from transport.wire import WireError

_MAY_BE_TOLD: tuple[type[Exception], ...] = (ApiError, ClusterUnreachable, WireError)
"""What an administrator may get for an answer."""

_TRY_AGAIN_SECONDS: Final = 0.05
"""After what time a topic is asked for again whose namesake is still being deleted."""


@frozen
class Administrator:
    """Asks for what a plan says."""

    cluster: SimulatedCluster
    coverage: Coverage

    async def do(self, request: Request) -> None:
        """Ask for something, and count what came of it."""
        try:
            await self._ask(request)
        except _MAY_BE_TOLD as refusal:
            self.coverage.count("requests refused")
            self.cluster.trace.add("admin", ADMIN, f"was told {type(refusal).__name__}: {refusal}")
        else:
            self.coverage.accepted(request)

    async def _ask(self, request: Request) -> None:
        match request:
            case CreateTopic(name=name, assignment=assignment):
                await self.cluster.create_topic(name, assignment)
            case Reassign(targets=targets):
                await self.cluster.reassign(dict(targets))
            case DeleteTopic():
                await self._delete(request)
            case Grow(topic=name, partitions=count):
                await self.cluster.add_partitions(name, count)
            case Elect(by_hand=True, partitions=names):
                administration.request_election(self.cluster, names or ())
            case Elect(kind=kind, partitions=names, orders=orders):
                await self.cluster.elect_leaders(kind, names, dict(orders))
            case NameLeader():
                await self.cluster.elect_leaders(ElectionType.PREFERRED, (), self._orders(request))
            case Alter(topic=topic, setting=setting, value=value):
                await administration.alter(self.cluster, topic, setting, value)

    def _orders(self, request: NameLeader) -> dict[str, tuple[int, ...]]:
        """Return the orders with the leaders that are wanted, of the partitions that there are now."""
        orders = {}
        for name in request.partitions:
            assignment = self.cluster.durable.assignment(partition_named(name))
            if assignment is not None:
                place = request.place % len(assignment.replicas)
                orders[name] = (*assignment.replicas[place:], *assignment.replicas[:place])
        return orders

    async def _delete(self, request: DeleteTopic) -> None:
        if request.by_hand:
            administration.mark_for_deletion(self.cluster, request.name)
        else:
            await self.cluster.delete_topic(request.name)
        while request.again:
            try:
                await self.cluster.create_topic(request.name, request.again)
            except ApiError as refusal:
                if refusal.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
            else:
                self.coverage.count("topics created again as soon as they were gone")
                return
            await trio.sleep(_TRY_AGAIN_SECONDS)
