"""Let random faults happen to the counters of counter_service.py, and find bugs that are planted in them.

Run it with `python -m pytest -p klamm.testing.plugin examples/test_planted_bug.py`.
"""

from __future__ import annotations

from functools import partial

import trio
from msgspec.structs import replace

from broker.kit import BrokerHandle
from examples.counter_service import APIS, Add, CounterService, Replica
from examples.test_with_cluster import add
from klamm.testing import ClusterFactory, SimulatedCluster, failing_seeds, random_faults
from transport.errors import ApiError, ErrorCode

Disks = dict[int, dict[str, Replica]]


class DurableCounters(CounterService):
    """Counters that survive a crash: in `disks`, by the id of the broker."""

    def __init__(self, handle: BrokerHandle, disks: Disks) -> None:
        super().__init__(handle)
        self._replicas = disks.setdefault(handle.broker_id, {})
        for replica in self._replicas.values():
            replica.state = replace(replica.state, leader=-1)


async def no_hit_is_lost(cluster: ClusterFactory, service: type[DurableCounters] = DurableCounters) -> None:
    """Count hits while random faults happen; afterwards the counter stands at no less than was acknowledged."""
    disks: Disks = {}
    async with cluster(brokers=4, service=lambda handle: service(handle, disks), own_apis=APIS) as c:
        await c.create_topic("counters", [(1, 2, 3)])
        totals: list[int] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_hits, c, totals)
            await random_faults(c, seconds=20)
            nursery.cancel_scope.cancel()
        await c.settle()
        assert await add(c, 0) >= len(totals)


async def count_hits(c: SimulatedCluster, totals: list[int]) -> None:
    """Add 1 again and again, and append each answer."""
    while True:
        totals.append(await add(c, 1))
        await trio.sleep(0.1)


def test_no_hit_is_lost() -> None:
    assert list(failing_seeds(no_hit_is_lost, range(2))) == []


class HastyCounters(DurableCounters):
    """A planted bug: answers before the followers have the change."""

    async def add(self, request: Add) -> int:
        replica = self._replicas.get(request.topic_id)
        if replica is None or replica.state.leader != self._me:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "nothing was added: send the request to the leader")
        total = replica.counters[request.counter] = replica.counters.get(request.counter, 0) + request.amount
        replica.version = (replica.state.leader_epoch, replica.version[1] + 1)
        return total


class ForgetfulCounters(DurableCounters):
    """A planted bug: counters are lost in a crash, and the broker stays in the ISR if it is back soon."""

    def __init__(self, handle: BrokerHandle, disks: Disks) -> None:
        del disks
        super().__init__(handle, {})


def test_random_faults_find_planted_bugs() -> None:
    for service in (HastyCounters, ForgetfulCounters):
        assert any(failing_seeds(partial(no_hit_is_lost, service=service), range(20))), service
