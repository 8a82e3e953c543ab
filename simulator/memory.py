"""Compare the active controller's memory with the store, once nothing disturbs the cluster.

A controller never reads again what it has written, so a fact that it did not apply, or applied wrongly, stays wrong
until the next controllership. What a controller keeps about work in progress must be gone when the work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from attrs import frozen
from msgspec.structs import replace

from controller.model.context import ControllerContext
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from controller.node.office import Office
from simulator.safety.exemptions import Exemptions
from simulator.store.durable import Durable
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.metadata import NO_LEADER, TopicPartition, number_in
from transport.store import formats, paths


@frozen
class Memory:
    """The memory of the controller in `office`, where `waiting` events are queued, to be compared with the store."""

    office: Office
    waiting: int
    durable: Durable
    exempt: Exemptions
    is_state_by_hand: Callable[[TopicPartition], bool]
    """Whether an operator has written a partition's state again, as it was, and nobody had to read it since."""

    absent: Collection[int] = ()
    """Brokers that are away for a while: their strays wait for them."""

    def faults(self) -> Iterator[str]:
        """Yield the differences."""
        yield from self._brokers()
        yield from self._topics()
        for tp, _ in self._partitions():
            yield from self._partition(tp)
        yield from self._moves()
        yield from self._left_over()
        yield from self._backlogs()

    @property
    def _context(self) -> ControllerContext:
        return self.office.context

    def _partitions(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        for tp, assignment in self.durable.partitions():
            if not self.exempt.has_topic(tp.topic):
                yield tp, assignment.replicas

    def _brokers(self) -> Iterator[str]:
        known, there = self._context.brokers, self.durable.brokers()
        for id_ in sorted({*known, *there}):
            if not self.exempt.has(paths.broker(id_)) and known.get(id_) != there.get(id_):
                yield f"the controller remembers {known.get(id_)} of broker {id_}, not {there.get(id_)}"

    def _topics(self) -> Iterator[str]:
        known = self._context.topics
        for name in self._sound(dict.fromkeys((*known, *self.durable.topics()))):
            znode = self.durable.tree.read(paths.topic(name))
            there = None if znode is None else (self.durable.topic(name), znode.stat.version)
            remembered = (known[name].znode, known[name].version) if name in known else None
            if remembered != there:
                yield f"the controller remembers {remembered} of topic {name}, not {there}"
            yield from self._min_isr(name)

    def _min_isr(self, name: str) -> Iterator[str]:
        znode = self.durable.tree.read(paths.topic_config(name))
        settings = {} if znode is None else formats.decode_config(paths.topic_config(name), znode.data)
        value, remembered = settings.get(MIN_INSYNC_REPLICAS), self._context.min_isr(name)
        if value is not None and number_in(value) not in (None, remembered):
            yield f"the controller takes {MIN_INSYNC_REPLICAS} of topic {name} to be {remembered}, not {value}"

    def _partition(self, tp: TopicPartition) -> Iterator[str]:
        remembered, there = self._context.leadership.get(tp), self.durable.leadership(tp)
        if remembered is not None and there is not None:
            # A controller epoch that no controller had counts as its own.
            there = replace(there, controller_epoch=min(there.controller_epoch, self._context.epoch))
            if self.is_state_by_hand(tp):
                there = replace(there, partition_epoch=remembered.partition_epoch)
        if remembered != there:
            yield f"the controller remembers {remembered} of {tp}, not {there}"
        phase = self._context.partition_phases.get(tp)
        is_led = there is not None and there.leader != NO_LEADER
        expected = PartitionPhase.ONLINE if is_led else PartitionPhase.NEW if there is None else PartitionPhase.OFFLINE
        if phase is not expected:
            yield f"the controller takes {tp} to be {phase}, not {expected}"

    def _moves(self) -> Iterator[str]:
        moving = [tp for tp, assignment in self.durable.partitions() if assignment.is_being_reassigned]
        remembered = self._context.reassigning
        if self._of_sound(remembered) != self._of_sound(moving):
            texts = [[str(tp) for tp in sorted(tps)] for tps in (remembered, moving)]
            yield f"the controller takes {texts[0]} to be moving, not {texts[1]}"
        for tp, identity in remembered.items():
            znode = self.durable.tree.read(paths.reassignment(tp))
            if znode is not None and znode.stat.czxid != identity.czxid and not self.exempt.has_topic(tp.topic):
                yield f"the controller takes the move of {tp} to be {identity.czxid}, not {znode.stat.czxid}"

    def _left_over(self) -> Iterator[str]:
        """Yield what stays although its cause is over."""
        context = self._context
        strays = [stray for stray in (*context.strays, *context.strays.failed) if stray.broker_id not in self.absent]
        tables: dict[str, Iterable[str]] = {
            "deletions": context.deletions,
            "strays": [stray.topic for stray in strays],
            "recalled replicas": [tp.topic for tp, _ in context.strays.recalled],
            "failed replicas": [tp.topic for (tp, _), failure in context.failures.items() if not failure.is_over],
            "closed topics": context.closed_topics,
            "the settings": [name for name in context.min_isrs if name not in context.topics],
        }
        for kind, topics in tables.items():
            if left := self._sound(topics):
                yield f"the controller remembers {kind} of {left}"
        if context.shutting_down:
            yield f"the controller takes brokers {sorted(context.shutting_down)} to be shutting down"
        yield from self._phases()

    def _phases(self) -> Iterator[str]:
        context = self._context
        for (tp, broker_id), phase in context.replica_phases.items():
            assignment, leadership = context.assignment(tp), context.leadership.get(tp)
            if self.exempt.has_topic(tp.topic) or broker_id not in context.brokers:
                continue
            # Without a member of the ISR, or one of its target, a move does not end, and its adding replicas stay New.
            is_leaderless = leadership is not None and leadership.leader == NO_LEADER
            is_held_up = is_leaderless or not context.brokers.keys() >= set(assignment.target_replicas)
            if is_held_up and broker_id in assignment.adding_replicas and phase is ReplicaPhase.NEW:
                continue
            if phase is not ReplicaPhase.ONLINE:
                yield f"the controller takes {tp} on broker {broker_id} to be {phase}, not {ReplicaPhase.ONLINE}"

    def _backlogs(self) -> Iterator[str]:
        sizes = self.office.channels.queue_sizes()
        if list(sizes) != sorted(self._context.brokers):
            yield f"the controller has channels to {list(sizes)}, not to {sorted(self._context.brokers)}"
        if self.waiting:
            yield f"{self.waiting} events wait in the controller's queue"
        yield from (f"{size} entries wait for broker {broker_id}" for broker_id, size in sizes.items() if size)

    def _sound(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self.exempt.has_topic(name)]

    def _of_sound(self, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [tp for tp in sorted(tps) if not self.exempt.has_topic(tp.topic)]
