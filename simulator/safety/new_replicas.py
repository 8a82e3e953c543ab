"""Check that a member of the ISR that has its data is not told that its replica is new.

A new replica may start with an empty log. A broker that lost a log directory would create an empty log elsewhere, and
still be trusted to have every acknowledged record (KAFKA-10314).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from attrs import define, field, frozen

from simulator.disk import Disk
from simulator.frames import ControlRequest
from simulator.safety.exemptions import Exemptions
from simulator.safety.partitions import PartitionChange
from simulator.safety.told import Channel, Told
from transport.messages import LeaderAndIsrRequest, PartitionState, StopReplicaRequest
from transport.metadata import INITIAL_LEADER_EPOCH, TopicPartition

_WAITED: Final = 12
"""More requests than an order waits for in a channel, where it stays new until it is sent."""

_Replica = tuple[TopicPartition, str, int]


@frozen
class _Member:
    """A replica in the ISR: when it joined, and how many requests of its controller its broker had obeyed by then."""

    since: float
    requests: int


@define
class NewReplicas:
    """The members of ISRs, and the storage of each replica that a broker was told to hold."""

    disks: Mapping[int, Disk]
    told: Told
    exempt: Exemptions
    is_kafkas: bool = False
    """Whether the brokers are Apache Kafka's, which keep from creating logs while a directory has failed."""

    _members: dict[_Replica, _Member] = field(factory=dict, init=False)
    _held: dict[_Replica, str] = field(factory=dict, init=False)

    def changed(self, change: PartitionChange, now: float) -> None:
        """Record who joined or left an ISR."""
        tp, before, after = change.tp, change.before, change.after
        isr = () if after is None or after.leadership is None else after.leadership.isr
        topic_id = "" if after is None else after.topic_id
        if before is not None and before.leadership is not None:
            for member in before.leadership.isr:
                if member not in isr or before.topic_id != topic_id:
                    self._members.pop((tp, before.topic_id, member), None)
        for member in isr:
            if (tp, topic_id, member) not in self._members:
                self._members[tp, topic_id, member] = _Member(now, self.told.requests(member))

    def ordered(self, broker_id: int, channel: Channel, request: ControlRequest) -> Iterator[str]:
        """Check an order that a broker obeys."""
        if isinstance(request, LeaderAndIsrRequest):
            for item in request.partitions:
                if item.is_new and not self.exempt.has_topic(item.state.topic):
                    yield from self._judge(broker_id, channel, item.state)
                elif self.is_kafkas and not self.exempt.has_topic(item.state.topic):
                    yield from self._judge_first(broker_id, channel, item.state)
                self._held[item.state.tp, item.state.topic_id, broker_id] = self._storage(broker_id)
        elif isinstance(request, StopReplicaRequest):
            for stop in request.partitions:
                if stop.delete:
                    self._held.pop((stop.tp, stop.topic_id, broker_id), None)

    def _judge(self, broker_id: int, channel: Channel, state: PartitionState) -> Iterator[str]:
        replica = state.tp, state.topic_id, broker_id
        member = self._members.get(replica)
        # An order that a member's broker has not received in time is sent with what has happened since.
        if member is None or broker_id not in state.isr or state.leader_epoch == INITIAL_LEADER_EPOCH:
            return
        if self._held.get(replica) != self._storage(broker_id):
            return
        if member.since < channel.began_at or channel.requests - member.requests > _WAITED:
            yield f"broker {broker_id} was told that its replica of {state.tp} is new, which is in the ISR {state.isr}"

    def _judge_first(self, broker_id: int, channel: Channel, state: PartitionState) -> Iterator[str]:
        """Check an order that calls a replica an old one: the first for a new topic is none of those."""
        replica = state.tp, state.topic_id, broker_id
        member = self._members.get(replica)
        if member is None or replica in self._held or state.leader_epoch != INITIAL_LEADER_EPOCH:
            return
        # A channel of the next controller may begin in the moment in which the one before creates a topic and dies.
        if member.since > channel.began_at:
            yield f"broker {broker_id} was told that its replica of {state.tp} is an old one, before it had any"

    def _storage(self, broker_id: int) -> str:
        return self.disks[broker_id].storage_id if broker_id in self.disks else ""
