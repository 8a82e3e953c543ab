"""Check that a replica's data are deleted only when the cluster no longer needs them.

A replica is given up by a commit that leaves it outside the ISR while a live leader does not need it: a leader in TRS
for a replica outside TRS, or any leader for a replica that is no longer in RS (an override abandons adding replicas
while ORS still leads). From then on it may be deleted, until it is in the ISR again. If it is wanted again before it
was deleted, only an earlier order may delete it: one that names no higher leader epoch.
All replicas of a topic that is marked for deletion may be deleted, by orders that say so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

import trio
from attrs import define, field

from simulator.safety.partitions import Partition, PartitionChange, Partitions
from simulator.safety.registrations import STALE_SECONDS, Registrations
from transport.messages import StopReplicaRequest
from transport.metadata import EPOCH_DURING_DELETE, NO_LEADER, TopicPartition

_REMEMBERED: Final = 16

_Key = tuple[TopicPartition, str]


@define
class Deletions:
    """The replicas that were given up, each with the latest leader epoch at which it was."""

    partitions: Partitions
    registrations: Registrations
    _given_up: dict[_Key, dict[int, int]] = field(factory=dict, init=False)
    _members: dict[_Key, dict[int, None]] = field(factory=dict, init=False)
    _orders: dict[tuple[int, TopicPartition], deque[tuple[str, int]]] = field(factory=dict, init=False)

    def changed(self, change: PartitionChange) -> None:
        """Record what a commit changed in a partition."""
        if change.after is not None:
            before = change.before.assignment.target_replicas if change.before and change.is_of_one_topic else ()
            self._look(change.tp, change.after, before)

    def registered(self, broker_id: int) -> None:
        """Record that a broker is alive: every partition that it leads has a live leader."""
        for tp, partition in self.partitions:
            if partition.leadership is not None and partition.leadership.leader == broker_id:
                self._look(tp, partition, partition.assignment.target_replicas)

    def ordered(self, broker_id: int, request: StopReplicaRequest) -> None:
        """Record which replicas a broker is ordered to delete."""
        for item in request.partitions:
            if item.delete:
                orders = self._orders.setdefault((broker_id, item.tp), deque(maxlen=_REMEMBERED))
                orders.append((item.topic_id, item.leader_epoch))

    def deleted(self, broker_id: int, tp: TopicPartition, topic_id: str) -> Iterator[str]:
        """Check a deletion that a broker carried out."""
        epochs = [epoch for id_, epoch in self._orders.pop((broker_id, tp), ()) if id_ == topic_id]
        partition = self.partitions.get(tp)
        # The topic is gone or was created again with another id, so the deleted data belong to no current partition.
        if partition is None or partition.topic_id != topic_id:
            return
        if self.partitions.is_exempt(tp.topic) and EPOCH_DURING_DELETE in epochs:
            return
        given_up_at = self._given_up.get((tp, topic_id), {}).get(broker_id)
        if given_up_at is None:
            yield f"broker {broker_id} deleted {tp}, which no controller had given up: {_text(partition)}"
        elif not any(epoch <= given_up_at for epoch in epochs):
            told = f"it was ordered to at leader epochs {epochs}"
            yield f"broker {broker_id} deleted {tp}, given up at leader epoch {given_up_at}: {told}; {_text(partition)}"

    def _look(self, tp: TopicPartition, partition: Partition, target_before: tuple[int, ...]) -> None:
        key, assignment, leadership = (tp, partition.topic_id), partition.assignment, partition.leadership
        if leadership is None:
            return
        members = self._members.setdefault(key, {})
        members.update(dict.fromkeys((*assignment.replicas, *leadership.isr)))
        given_up = self._given_up.setdefault(key, {})
        target, epoch = assignment.target_replicas, leadership.leader_epoch
        for member in members:
            if member in leadership.isr:
                given_up.pop(member, None)
            # A replica in the target keeps the epoch at which it was given up: only earlier orders may delete it.
            elif member in target:
                continue
            elif (member in given_up and member not in target_before) or self._is_led_without(member, partition):
                given_up[member] = epoch

    def _is_led_without(self, member: int, partition: Partition) -> bool:
        assignment, leadership = partition.assignment, partition.leadership
        leader = NO_LEADER if leadership is None else leadership.leader
        if not self.registrations.was_live(leader, since=trio.current_time() - STALE_SECONDS):
            return False
        return leader in (assignment.target_replicas if member in assignment.replicas else assignment.replicas)


def _text(partition: Partition) -> str:
    return f"{partition.assignment} {partition.leadership}"
