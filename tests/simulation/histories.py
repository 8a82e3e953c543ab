"""Histories for the checks without a cluster: commits, orders and deletions of controllers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from simulator.disk import Disk
from simulator.safety.invariants import Safety
from simulator.store.durable import Durable
from simulator.trace import Trace
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    BrokerEndpoint,
    ElectionType,
    ElectLeadersRequest,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    PartitionState,
    Record,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import BrokerRegistration, LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import ANY_VERSION, Create, Delete, Op, Set
from transport.store.tree import Tree

TP = TopicPartition("orders", 0)
TOPIC_ID = "id-of-orders"
FIRST, SECOND = "controller-101", "controller-102"
PLAIN = ReplicaAssignment((1, 2, 3))
TARGET = ReplicaAssignment((4, 5, 6))
MOVING = ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))


class History:
    """A cluster of brokers 1 to 6, of which 1, 2 and 3 hold orders-0 and 1 leads; controller 101 is in office.

    It tracks the latest state; each method is one event.
    """

    def __init__(self) -> None:
        self.tree = Tree()
        self._numbers = count(100)
        self.safety = Safety(Trace(), lambda: None)
        self.safety.durable = Durable(self.tree)
        self.safety.disks.update((id_, Disk(self.safety, id_)) for id_ in range(1, 7))
        self.state = LeaderAndIsr(1, 0, (1, 2, 3), 0, 1)
        self.assignment = PLAIN
        parents = ("/brokers", "/admin", "/klamm", paths.BROKER_IDS, paths.TOPICS, paths.STRAYS, "/admin/delete_topics")
        self.commit("admin", *(Create(path) for path in parents))
        self.commit(FIRST, Create(paths.CONTROLLER_EPOCH, b"0"))
        self.elect(FIRST)
        for id_ in range(1, 7):
            self.register(id_)
        below = (paths.topic_partitions(TP.topic), paths.partition(TP))
        self.commit(FIRST, Create(paths.topic(TP.topic), self._topic()), *(Create(path) for path in below))
        self.commit(FIRST, Create(paths.partition_state(TP), formats.encode_partition_state(self.state)))
        assert self.found is None

    @property
    def found(self) -> str | None:
        """The first violation."""
        return None if self.safety.violation is None else self.safety.violation.text

    # --- the store ----------------------------------------------------------------------------------------------

    def commit(self, host: str, *ops: Op) -> None:
        self.safety.committed(host, ops, self.tree.multi(ops, 1, 0).committed)

    def elect(self, host: str, epoch: int | None = None) -> None:
        """Let a controller take office, at the next controller epoch or a given one."""
        znode = self.tree.read(paths.CONTROLLER_EPOCH)
        assert znode is not None
        held = [Delete(paths.CONTROLLER)] if self.tree.read(paths.CONTROLLER) else []
        raised = str(int(znode.data) + 1 if epoch is None else epoch).encode()
        claim = Create(paths.CONTROLLER, formats.encode_controller(int(host.removeprefix("controller-")), 0))
        self.commit("", *held)
        self.commit(host, claim, Set(paths.CONTROLLER_EPOCH, raised, znode.stat.version))

    def register(self, broker_id: int) -> None:
        registration = BrokerRegistration(broker_id, f"broker-{broker_id}", 9092, 0)
        self.commit(f"broker-{broker_id}", Create(paths.broker(broker_id), formats.encode_broker(registration, 0)))

    def damage_registration(self, broker_id: int) -> None:
        self.commit("admin", Set(paths.broker(broker_id), b"{", ANY_VERSION))

    def expire(self, broker_id: int) -> None:
        self.commit("", Delete(paths.broker(broker_id)))

    def write(self, host: str = FIRST, assignment: ReplicaAssignment | None = None, **changes: Any) -> None:
        """Write the partition's state with `changes`, and the assignment if given, in one commit."""
        ops: list[Op] = []
        if changes:
            version = self.state.partition_epoch
            self.state = replace(self.state, partition_epoch=version + 1, **changes)
            ops.append(Set(paths.partition_state(TP), formats.encode_partition_state(self.state), version))
        if assignment is not None:
            self.assignment = assignment
            ops.append(Set(paths.topic(TP.topic), self._topic(), -1))
        self.commit(host, *ops)

    def bump(self, host: str = FIRST, assignment: ReplicaAssignment | None = None, **changes: Any) -> None:
        """Write with the next leader epoch."""
        self.write(host, assignment, leader_epoch=self.state.leader_epoch + 1, **changes)

    def elect_uncleanly(self, leader: int) -> None:
        """Elect from outside the ISR, at an administrator's request."""
        self.safety.asked(ElectLeadersRequest(ElectionType.UNCLEAN, (TP,)))
        self.elect_as_nobody_asked(leader)

    def elect_as_nobody_asked(self, leader: int) -> None:
        self.bump(leader=leader, isr=(leader,), leader_recovery_state=LeaderRecoveryState.RECOVERING)

    def _topic(self) -> bytes:
        return formats.encode_topic(TopicZnode({TP.partition: self.assignment}, TOPIC_ID))

    # --- the wire -----------------------------------------------------------------------------------------------

    def ask(self, *isr: int) -> None:
        """Let the leader propose an ISR."""
        state = self.state
        item = AlterPartitionItem(*TP[:1], TOPIC_ID, TP.partition, state.leader_epoch, isr, state.partition_epoch)
        self.safety.asked(AlterPartitionRequest(state.leader, 0, (item,)))

    def grow(self, *isr: int) -> None:
        """Let the leader propose an ISR, and get it."""
        self.ask(*isr)
        self.write(isr=isr)

    def told(self, **changes: Any) -> PartitionState:
        """Return the state that brokers are sent: the current one with `changes`."""
        s, a = self.state, self.assignment
        state = PartitionState(
            *TP[:1], TOPIC_ID, TP.partition, 1, s.leader, s.leader_epoch, s.isr, s.partition_epoch, a.replicas
        )
        return replace(state, **changes)

    def tell(
        self, broker_id: int, state: PartitionState, *, host: str = FIRST, epoch: int = 1, number: int | None = None
    ) -> None:
        order = LeaderAndIsrRequest(
            101, epoch, 0, (LeaderAndIsrPartition(state, is_new=False),), self._numbered(number)
        )
        self.safety.ordered(host, broker_id, order)

    def publish(self, broker_id: int, state: PartitionState) -> None:
        controller = BrokerEndpoint(101, FIRST, 9092)
        self.safety.ordered(
            FIRST, broker_id, UpdateMetadataRequest(101, 1, 0, controller, None, (state,), None, self._numbered())
        )

    def order_deletion(self, broker_id: int, leader_epoch: int | None = None, number: int | None = None) -> None:
        epoch = self.state.leader_epoch if leader_epoch is None else leader_epoch
        item = StopReplicaPartition(*TP[:1], TOPIC_ID, TP.partition, epoch, delete=True)
        self.safety.ordered(FIRST, broker_id, StopReplicaRequest(101, 1, 0, (item,), self._numbered(number)))

    def _numbered(self, number: int | None = None) -> int:
        return next(self._numbers) if number is None else number

    # --- disks --------------------------------------------------------------------------------------------------

    def delete(self, broker_id: int, topic_id: str = TOPIC_ID) -> None:
        self.safety.deleted(broker_id, TP, topic_id)

    def append(self, brokers: Sequence[int], *values: bytes, epoch: int = 0) -> None:
        for broker_id in brokers:
            disk = self.safety.disks[broker_id]
            disk.open(TP, TOPIC_ID).append([Record(epoch, value) for value in values])

    def truncate(self, broker_id: int, end_offset: int) -> None:
        self.safety.disks[broker_id].open(TP, TOPIC_ID).truncate(end_offset)

    def wipe(self, broker_id: int) -> None:
        disk = self.safety.disks[broker_id]
        disk.wipe(f"a new disk of {broker_id}")
        disk.lost_at = -1.0  # before any registration

    def acknowledge(self, base_offset: int, *values: bytes) -> None:
        self.safety.acknowledged(TP, base_offset, values)


def moved_to_target(h: History) -> None:
    """Move orders-0 to 4, 5 and 6, up to B4."""
    h.write(assignment=MOVING)
    h.bump()
    h.grow(1, 2, 3, 4, 5, 6)
    h.bump(leader=4)
    h.bump(isr=(4, 5, 6))


def whole_move(h: History) -> None:
    """Move orders-0 to 4, 5 and 6, completely."""
    moved_to_target(h)
    h.write(assignment=TARGET)


def topic_of_the_same_name(h: History) -> None:
    """Replace orders by another topic of the same name."""
    h.bump()
    h.commit(FIRST, *(Delete(path) for path in (paths.partition_state(TP), paths.partition(TP))))
    h.commit(FIRST, Delete(paths.topic_partitions(TP.topic)), Delete(paths.topic(TP.topic)))
    h.commit(FIRST, Create(paths.topic(TP.topic), b'{"partitions": {"0": [4]}, "topic_id": "another"}'))
    h.commit(FIRST, Create(paths.topic_partitions(TP.topic)), Create(paths.partition(TP)))
    state = b'{"leader": 4, "isr": [4], "leader_epoch": 0, "controller_epoch": 1}'
    h.commit(FIRST, Create(paths.partition_state(TP), state))
