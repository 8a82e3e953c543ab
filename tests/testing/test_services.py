"""Users' own services in a simulated cluster."""

from __future__ import annotations

import pytest
from attrs import define
from trio.testing import MockClock

from broker.kit import BrokerHandle
from broker.metadata_cache import MetadataCache
from broker.service import Service
from klamm.testing import open_cluster
from transport.errors import ApiError, ErrorCode
from transport.messages import Api, PartitionState, Request, StopReplicaPartition
from transport.wire import ConnectionBroken, Handlers


class Starts(Request[int], frozen=True):
    """A request for the number of starts of a broker."""

    reason: str


APIS = (Api(10_000, "Starts", Starts, int),)


@define(eq=False)
class StartCounter(Service):
    """Holds no replicas; counts its starts in `disk`, which outlives it."""

    handle: BrokerHandle
    disk: dict[int, int]

    def __attrs_post_init__(self) -> None:
        self.disk[self.handle.broker_id] = self.disk.get(self.handle.broker_id, 0) + 1

    def handlers(self) -> Handlers:
        return {Starts: self.starts}

    async def become_leader(self, state: PartitionState, *, is_new: bool) -> None: ...

    async def become_follower(self, state: PartitionState, *, is_new: bool) -> None: ...

    async def stop_replica(self, partition: StopReplicaPartition) -> None: ...

    async def update_metadata(self, metadata: MetadataCache) -> None: ...

    async def starts(self, request: Starts) -> int:
        if not request.reason:
            raise ApiError(ErrorCode.INVALID_REQUEST, "say why")
        return self.disk[self.handle.broker_id]


@pytest.mark.requirement("E4")
async def test_a_service_is_asked_restarted_and_kept_track_of(autojump_clock: MockClock) -> None:  # noqa: ARG001
    disk: dict[int, int] = {}
    async with open_cluster(brokers=2, service=lambda handle: StartCounter(handle, disk), own_apis=APIS) as c:
        c.crash(2)
        with pytest.raises(ConnectionBroken):
            await c.ask(2, Starts("it is dead"))
        c.restart(2)
        await c.brokers[2].started.wait()
        assert [await c.ask(id_, Starts("to test")) for id_ in (1, 2)] == [1, 2]
        with pytest.raises(ApiError, match="say why"):
            await c.ask(1, Starts(""))
        await c.settle()
