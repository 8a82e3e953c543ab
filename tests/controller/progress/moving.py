"""Moves whose logs grow as a test says, and the reports made of them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from controller.progress.report import Survey, Totals, with_progress
from controller.progress.tracker import Moves, MoveTracker, MovingPartition
from tests.controller.conftest import TP
from transport.errors import ErrorCode
from transport.messages import (
    UNTHROTTLED,
    DescribeReassignmentsResponse,
    LogDir,
    LogDirReplica,
    ReassignmentDescription,
    ReplicaProgress,
)
from transport.metadata import BrokerRegistration, TopicPartition

OTHER = TopicPartition("orders", 1)
NOW_MS = 1_700_000_000_000
RECORD = 100
"""Bytes."""


def broker(broker_id: int, storage_id: str = "disk") -> BrokerRegistration:
    return BrokerRegistration(broker_id, "127.0.0.1", 9000 + broker_id, 1, storage_id=storage_id)


def totals(progress: MoveTracker, now: float) -> Totals:
    survey = Survey(progress)
    for tp in progress.moves:
        survey.look_at(tp, now)
    return survey.totals()


@define
class Room:
    """Moves of partitions led by 1, with what was told of them so far; time goes on as told."""

    partitions: dict[TopicPartition, MovingPartition] = field(factory=dict)
    live: dict[int, BrokerRegistration] = field(factory=lambda: {id_: broker(id_) for id_ in (1, 2, 3, 4, 5)})
    progress: MoveTracker = field(factory=MoveTracker)
    now: float = 100.0

    def move(self, *target: int, tp: TopicPartition = TP, isr: tuple[int, ...] = (1,), leader: int = 1) -> None:
        self.partitions[tp] = MovingPartition(tp, "id", leader, isr, target)
        self.look()

    def look(self) -> None:
        self.progress.follow(Moves(tuple(self.partitions.values()), tuple(self.live.values())), self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def told(self, broker_id: int, records: int | None, *, tp: TopicPartition = TP, size: int | None = None) -> None:
        """Have a broker say how many records its log has, None for no log."""
        replicas: tuple[LogDirReplica, ...] = ()
        if records is not None:
            size = records * RECORD if size is None else size
            replicas = (LogDirReplica(tp.topic, "id", tp.partition, size, records, 0),)
        self.progress.told(broker_id, [tp], (LogDir("/d", ErrorCode.NONE, replicas),), self.now)

    def copy(self, seconds: float, *rates: tuple[int, int], tp: TopicPartition = TP) -> None:
        """Let logs grow by so many records per second, and be asked once per second."""
        for _ in range(round(seconds)):
            self.wait(1)
            for broker_id, rate in rates:
                self.told(broker_id, self.progress.sizes(tp, broker_id)[1] + rate, tp=tp)

    def describe(self, tp: TopicPartition = TP) -> ReassignmentDescription:
        [described] = self.describe_all([tp]).reassignments
        return described

    def describe_all(self, tps: Sequence[TopicPartition]) -> DescribeReassignmentsResponse:
        all_moves = totals(self.progress, self.now)
        told = tuple(self._with_progress(self._plain(self.partitions[tp]), all_moves) for tp in tps)
        return DescribeReassignmentsResponse(told, rate=all_moves.rate, eta_ms=all_moves.eta_ms)

    def _with_progress(self, plain: ReassignmentDescription, all_moves: Totals) -> ReassignmentDescription:
        return with_progress(plain, self.progress, all_moves, self.now, NOW_MS)

    def _plain(self, move: MovingPartition) -> ReassignmentDescription:
        replicas = tuple(ReplicaProgress(r, in_sync=r in move.isr) for r in move.target)
        sets = (move.target, (), ())
        return ReassignmentDescription(
            *move.tp, 7, NOW_MS - 60_000, move.leader, UNTHROTTLED, *sets, move.isr, move.target, replicas
        )


def copying(records: int = 1000, done: int = 0) -> Room:
    """Make a room where 4 copies from 1."""
    room = Room()
    room.move(4)
    room.told(1, records)
    room.told(4, done)
    return room
