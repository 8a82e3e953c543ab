"""Replicated counters on the broker kit, kept in memory: slow followers stay in the ISR, retries count again."""

from __future__ import annotations

import trio
from attrs import Factory, define

from broker.kit import BrokerHandle
from broker.service import Service
from transport.errors import ApiError, ErrorCode
from transport.messages import Api, PartitionState, Request, StopReplicaPartition
from transport.wire import Handlers


class Add(Request[int], frozen=True):
    """Add to a counter, or read it with 0; the answer is the value that the whole ISR holds."""

    topic_id: str
    counter: str
    amount: int


class Put(Request[bool], frozen=True):
    """The leader's counters at a version; the answer says whether the follower accepted them."""

    topic_id: str
    version: tuple[int, int]
    counters: tuple[tuple[str, int], ...]


APIS = (Api(10_000, "Add", Add, int), Api(10_001, "Put", Put, bool))


@define(eq=False)
class Replica:
    """The counters of a topic's only partition. A version is a leader epoch and a number of changes."""

    state: PartitionState
    version: tuple[int, int] = (0, 0)
    counters: dict[str, int] = Factory(dict)
    committed: tuple[int, int] = (0, 0)


class CounterService(Service):
    """The replicas of one broker, by topic id."""

    def __init__(self, handle: BrokerHandle) -> None:
        self._handle, self._me = handle, handle.broker_id
        self._replicas: dict[str, Replica] = {}
        handle.nursery.start_soon(self._replicate)

    def handlers(self) -> Handlers:
        return {Add: self.add, Put: self.put}

    async def become_leader(self, state: PartitionState, *, is_new: bool) -> None:  # noqa: ARG002
        self._replicas.setdefault(state.topic_id, Replica(state)).state = state

    become_follower = become_leader

    async def stop_replica(self, partition: StopReplicaPartition) -> None:
        self._replicas.pop(partition.topic_id, None)

    async def add(self, request: Add) -> int:
        replica, name = self._replicas.get(request.topic_id), request.counter
        if replica is None or replica.state.leader != self._me:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "nothing was added: send the request to the leader")
        total = replica.counters[name] = replica.counters.get(name, 0) + request.amount
        version = replica.version = (replica.state.leader_epoch, replica.version[1] + 1)
        while replica.committed < version:
            await trio.sleep(0.01)
            if self._replicas.get(request.topic_id) is not replica or replica.state.leader != self._me:
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "the leader changed: the amount may have been added or not")
        return total

    async def put(self, request: Put) -> bool:
        replica = self._replicas.get(request.topic_id)
        if replica is None or request.version[0] != replica.state.leader_epoch or request.version < replica.version:
            return False
        self._replicas[request.topic_id] = Replica(replica.state, request.version, dict(request.counters))
        return True

    async def _replicate(self) -> None:
        while True:
            for replica in [r for r in self._replicas.values() if r.state.leader == self._me]:
                await self._spread(replica, replica.state)
            await trio.sleep(0.01)

    async def _spread(self, replica: Replica, state: PartitionState) -> None:
        # Nothing is committed while a follower joins the ISR: it might be elected without the change.
        put = Put(state.topic_id, (state.leader_epoch, replica.version[1]), tuple(replica.counters.items()))
        answers = await self._handle.ask_all({*state.replicas, *state.isr} - {self._me}, put, timeout=1)
        holders = tuple(follower for follower, taken in answers.items() if taken)
        if joining := tuple(follower for follower in holders if follower not in state.isr):
            granted = await self._handle.link.alter_isr(state, state.isr + joining)
            replica.state = granted if granted and replica.state is state else replica.state
        elif replica.state is state and {*state.isr} <= {self._me, *holders}:
            replica.committed = put.version
