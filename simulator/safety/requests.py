"""The requests about partitions that controllers have received or found in the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from attrs import define, field

from simulator.model.view import Asked, Proposal
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ElectionType,
    ElectLeadersRequest,
    RolloutMove,
)
from transport.metadata import TopicPartition
from transport.store import formats, paths, rollouts
from transport.store.protocol import Create, Op, Set

_REMEMBERED: Final = 1000
"""Number of requests of one kind remembered for each partition: as many as a controller's queue holds."""

T = TypeVar("T")
_ByPartition = dict[TopicPartition, dict[T, None]]


@define
class Requests:
    """The latest requests about each partition, whichever controller received them: a client may ask them all."""

    _targets: _ByPartition[tuple[int, ...] | None] = field(factory=dict, init=False)
    """None asks to cancel."""

    _orders: _ByPartition[tuple[int, ...]] = field(factory=dict, init=False)
    _proposals: _ByPartition[Proposal] = field(factory=dict, init=False)
    _elections: _ByPartition[ElectionType] = field(factory=dict, init=False)
    _everywhere: dict[ElectionType, None] = field(factory=dict, init=False)

    def received(self, request: object) -> None:
        """Record a request that a controller takes from the network."""
        match request:
            case AlterPartitionReassignmentsRequest():
                for item in request.partitions:
                    _remember(self._targets, item.tp, item.replicas)
            case ElectLeadersRequest():
                self._elect(request)
            case AlterPartitionRequest():
                self._alter(request)

    def committed(self, ops: Sequence[Op]) -> None:
        """Record the reassignments and the plans that a commit leaves in the store."""
        for op in ops:
            if op.path == paths.REASSIGN_PARTITIONS and isinstance(op, Create | Set):
                with suppress(formats.UndecodableZnode):
                    for tp, target in formats.decode_reassign_partitions(op.data).items():
                        _remember(self._targets, tp, target)
            elif op.path.startswith(f"{paths.ROLLOUTS}/") and "/moves/" in op.path and isinstance(op, Create | Set):
                with suppress(formats.UndecodableZnode):
                    self._plan(rollouts.decode_part(op.path, op.data))

    def _plan(self, moves: Iterable[RolloutMove]) -> None:
        """Record the moves of a plan, which may be cancelled and taken back, and end with a preferred leader."""
        for move in moves:
            for target in (move.after, move.before, None):
                _remember(self._targets, move.tp, target)
            _remember(self._elections, move.tp, ElectionType.PREFERRED)

    def _elect(self, request: ElectLeadersRequest) -> None:
        for order in request.orders:
            _remember(self._orders, order.tp, order.replicas)
            _remember(self._elections, order.tp, request.election_type)
        if request.partitions is None and not request.orders:
            self._everywhere[request.election_type] = None
        for tp in request.partitions or ():
            _remember(self._elections, tp, request.election_type)

    def _alter(self, request: AlterPartitionRequest) -> None:
        for item in request.partitions:
            epochs = item.leader_epoch, item.partition_epoch
            proposal = Proposal(request.broker_id, *epochs, item.new_isr, item.leader_recovery_state)
            _remember(self._proposals, item.tp, proposal)

    def about(self, tp: TopicPartition, originals: Iterable[tuple[int, ...]]) -> Asked:
        """Return the requests about a partition; `originals` are the replicas that a cancellation may restore."""
        asked = self._targets.get(tp, {})
        targets = [target for target in asked if target is not None]
        if None in asked:
            targets += originals
        return Asked(
            tuple(dict.fromkeys(targets)),
            tuple(self._orders.get(tp, ())),
            frozenset({*self._elections.get(tp, ()), *self._everywhere}),
            tuple(self._proposals.get(tp, ())),
        )


def _remember(requests: _ByPartition[T], tp: TopicPartition, request: T) -> None:
    of_partition = requests.setdefault(tp, {})
    of_partition.pop(request, None)
    of_partition[request] = None
    if len(of_partition) > _REMEMBERED:
        del of_partition[next(iter(of_partition))]
