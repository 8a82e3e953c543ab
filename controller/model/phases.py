"""The states of all partitions and replicas, of which a controller keeps more than of anything else.

Most partitions are in the same states as others. A row has the state of a partition and those of its replicas, in the
order of its assignment, and equal rows are one object: a partition takes one entry of a dictionary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache
from itertools import groupby
from typing import Final, TypeVar, overload

from attrs import define, field

from controller.model.facts import Replica
from controller.model.known_topics import KnownTopic, assignment_of, assignments_of
from controller.model.state_machines import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionPhase,
    ReplicaPhase,
    Row,
)
from transport.log import get_logger
from transport.metadata import TopicPartition

log = get_logger(__name__)

T = TypeVar("T")

NO_ROW: Final[Row] = (None, ())


@define
class Phases:
    """The rows by partition. `topics` are those of the context, which reports every change of an assignment."""

    topics: Mapping[str, KnownTopic]
    rows: dict[TopicPartition, Row] = field(factory=dict, init=False)
    others: dict[Replica, ReplicaPhase] = field(factory=dict, init=False)
    """The states of replicas that are not assigned."""

    _known: dict[Row, Row] = field(factory=dict, init=False, eq=False)

    def replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        """Return the assigned replicas of a partition."""
        return assignment_of(self.topics, tp).replicas

    def put(self, tp: TopicPartition, row: Row) -> None:
        """Set the states of a partition and of its assigned replicas."""
        if row[0] is None and not any(row[1]):
            self.rows.pop(tp, None)
        else:
            self.rows[tp] = self.shared(row)

    def of_all(self, tps: Iterable[TopicPartition]) -> list[Row]:
        """Return the row of each of many partitions."""
        rows = self.rows
        return [rows.get(tp, NO_ROW) for tp in tps]

    def put_all(self, tps: Iterable[TopicPartition], rows: Sequence[Row]) -> None:
        """Set the states of many partitions, each of which has one, and of their assigned replicas."""
        # A caller has few rows, many times each.
        shared = {key: self.shared(row) for key, row in dict(zip(map(id, rows), rows, strict=True)).items()}
        self.rows.update(zip(tps, map(shared.__getitem__, map(id, rows)), strict=True))

    def shared(self, row: Row) -> Row:
        """Return one object for equal rows."""
        return self._known.setdefault(row, row)

    def ids_of(self, phases: Collection[PartitionPhase]) -> frozenset[int]:
        """Return the ids of the rows of partitions in one of these states."""
        return frozenset([id(row) for row in self._known if row[0] in phases])

    def reassign(self, tp: TopicPartition, old: Sequence[int], new: Sequence[int]) -> None:
        """Follow a change of the assigned replicas: those no longer assigned lose their states."""
        partition, phases = self.rows.get(tp, NO_ROW)
        found = dict(zip(old, phases, strict=True)) if phases else {}
        found |= {r: self.others.pop((tp, r)) for r in new if (tp, r) in self.others}
        after = tuple([found.get(r) for r in new])
        self.put(tp, (partition, after if any(after) else ()))


class PartitionPhases(MutableMapping[TopicPartition, PartitionPhase]):
    """The state of each partition that has one."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._rows = phases.rows

    @overload
    def get(self, tp: TopicPartition, default: None = None, /) -> PartitionPhase | None: ...
    @overload
    def get(self, tp: TopicPartition, default: PartitionPhase | T, /) -> PartitionPhase | T: ...
    def get(self, tp: TopicPartition, default: T | None = None, /) -> PartitionPhase | T | None:
        """Return the state of a partition."""
        phase = self._rows.get(tp, NO_ROW)[0]
        return default if phase is None else phase

    def __contains__(self, tp: object) -> bool:
        return self._rows.get(tp, NO_ROW)[0] is not None  # type: ignore[call-overload]

    def __getitem__(self, tp: TopicPartition) -> PartitionPhase:
        phase = self._rows[tp][0]
        if phase is None:
            raise KeyError(tp)
        return phase

    def __setitem__(self, tp: TopicPartition, phase: PartitionPhase) -> None:
        self._phases.put(tp, (phase, self._rows.get(tp, NO_ROW)[1]))

    def __delitem__(self, tp: TopicPartition) -> None:
        self[tp]
        self._phases.put(tp, (None, self._rows[tp][1]))

    def __iter__(self) -> Iterator[TopicPartition]:
        return (tp for tp, (phase, _) in self._rows.items() if phase is not None)

    def __len__(self) -> int:
        return sum(phase is not None for phase, _ in self._rows.values())

    def of_all(self, tps: Iterable[TopicPartition]) -> list[PartitionPhase | None]:
        """Return the state of each of many partitions, None for one that has none."""
        rows = self._rows
        return [rows.get(tp, NO_ROW)[0] for tp in tps]

    def those_in(self, phases: Collection[PartitionPhase]) -> list[TopicPartition]:
        """Return the partitions in one of these states."""
        # Equal rows are one object, and few of them occur.
        wanted = self._phases.ids_of(phases)
        return [tp for tp, row in self._rows.items() if id(row) in wanted] if wanted else []

    def move(self, tp: TopicPartition, to: PartitionPhase) -> None:
        """Let a partition enter a state, unless the table of states forbids it."""
        before, replicas = self._rows.get(tp, NO_ROW)
        before = before or PartitionPhase.NON_EXISTENT
        if to in PARTITION_TRANSITIONS[before]:
            self._phases.put(tp, (to, replicas))
        else:
            log.error("illegal partition transition", partition=str(tp), before=before.value, to=to.value)

    def move_all(self, tps: Sequence[TopicPartition], to: PartitionPhase) -> bool:
        """Let partitions enter a state; return False, and change nothing, if the table forbids it to one of them."""
        rows = self._phases.of_all(tps)
        after: dict[Row, Row] = {}
        for row in set(rows):
            if to not in PARTITION_TRANSITIONS[row[0] or PartitionPhase.NON_EXISTENT]:
                return False
            after[row] = self._phases.shared((to, row[1]))
        self._rows.update(zip(tps, map(after.__getitem__, rows), strict=True))
        return True


class ReplicaPhases(MutableMapping[Replica, ReplicaPhase]):
    """The state of each replica that has one."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._rows = phases.rows

    @overload
    def get(self, replica: Replica, default: None = None, /) -> ReplicaPhase | None: ...
    @overload
    def get(self, replica: Replica, default: ReplicaPhase | T, /) -> ReplicaPhase | T: ...
    def get(self, replica: Replica, default: T | None = None, /) -> ReplicaPhase | T | None:
        """Return the state of a replica."""
        tp, broker_id = replica
        phases = self._rows.get(tp, NO_ROW)[1]
        if phases:
            replicas = self._phases.replicas(tp)
            if broker_id in replicas:
                phase = phases[replicas.index(broker_id)]
                return default if phase is None else phase
        return self._phases.others.get(replica, default) if self._phases.others else default

    def __contains__(self, replica: object) -> bool:
        return self.get(replica) is not None  # type: ignore[call-overload]

    def __getitem__(self, replica: Replica) -> ReplicaPhase:
        phase = self.get(replica)
        if phase is None:
            raise KeyError(replica)
        return phase

    def __setitem__(self, replica: Replica, phase: ReplicaPhase) -> None:
        self._set(replica, phase)

    def __delitem__(self, replica: Replica) -> None:
        self[replica]
        self._set(replica, None)

    def __iter__(self) -> Iterator[Replica]:
        for tp, (_, phases) in self._rows.items():
            if phases:
                held = zip(self._phases.replicas(tp), phases, strict=False)
                yield from ((tp, broker_id) for broker_id, phase in held if phase is not None)
        yield from self._phases.others

    def __len__(self) -> int:
        return sum(len(phases) - phases.count(None) for _, phases in self._rows.values()) + len(self._phases.others)

    def of(self, tp: TopicPartition) -> tuple[ReplicaPhase | None, ...]:
        """Return the states of a partition's assigned replicas, in their order: None for one without a state."""
        return self._rows.get(tp, NO_ROW)[1] or (None,) * len(self._phases.replicas(tp))

    def are_all(self, tps: Iterable[TopicPartition], phase: ReplicaPhase) -> bool:
        """Return whether all assigned replicas of partitions are in a state."""
        rows = (self._rows.get(tp, NO_ROW) for tp in tps)
        return all(set(row[1]) == {phase} for row, _ in groupby(rows))

    def those_in(self, phase: ReplicaPhase, broker_id: int, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of the partitions whose assigned replica on a broker is in a state."""

        @cache
        def is_in(row: Row, replicas: tuple[int, ...]) -> bool:
            return (broker_id, phase) in zip(replicas, row[1], strict=False)

        rows = self._rows
        known = [tp for tp in tps if tp in rows]
        both = zip(known, assignments_of(self._phases.topics, known), strict=True)
        return [tp for tp, assignment in both if is_in(rows[tp], assignment.replicas)]

    def move(self, replica: Replica, to: ReplicaPhase) -> None:
        """Let a replica enter a state, unless the table of states forbids it."""
        before = self.get(replica, ReplicaPhase.NON_EXISTENT)
        if to in REPLICA_TRANSITIONS[before]:
            self._set(replica, None if to is ReplicaPhase.NON_EXISTENT else to)
        else:
            tp, broker_id = replica
            text = "illegal replica transition"
            log.error(text, partition=str(tp), broker=broker_id, before=before.value, to=to.value)

    def those_on(self, broker_id: int, tps: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return those of the partitions whose replica on a broker has a state."""
        kinds = {self._rows.get(tp, NO_ROW)[1] for tp in tps}
        if self._phases.others or any(not phases or None in phases for phases in kinds):
            return [tp for tp in tps if (tp, broker_id) in self]
        of_all = assignments_of(self._phases.topics, tps)
        return [tp for tp, assignment in zip(tps, of_all, strict=True) if broker_id in assignment.replicas]

    def move_all(self, tps: Sequence[TopicPartition], brokers: Sequence[tuple[int, ...]], to: ReplicaPhase) -> bool:
        """Let the replicas of partitions on `brokers`, which has those of each, enter a state.

        Return False, and change nothing, if one is not assigned, or if the table of states forbids it to one. The same
        rows occur again and again, so each transition of a row is made once.
        """
        of_all = assignments_of(self._phases.topics, tps)
        replicas = [assignment.replicas for assignment in of_all]
        moves = list(zip(self._phases.of_all(tps), replicas, brokers, strict=True))
        after: dict[tuple[Row, tuple[int, ...], tuple[int, ...]], Row] = {}
        for move in set(moves):
            row = _moved(*move, to)
            if row is None:
                return False
            after[move] = self._phases.shared(row)
        self._rows.update(zip(tps, map(after.__getitem__, moves), strict=True))
        return True

    def _set(self, replica: Replica, phase: ReplicaPhase | None) -> None:
        tp, broker_id = replica
        replicas = self._phases.replicas(tp)
        if broker_id in replicas:
            partition, phases = self._rows.get(tp, NO_ROW)
            after = _with(phases or (None,) * len(replicas), replicas.index(broker_id), phase)
            self._phases.put(tp, (partition, after if any(after) else ()))
        elif phase is None:
            self._phases.others.pop(replica, None)
        else:
            self._phases.others[replica] = phase


def _moved(row: Row, replicas: tuple[int, ...], brokers: tuple[int, ...], to: ReplicaPhase) -> Row | None:
    """Return a row in which the replicas on `brokers` have entered a state; None if one may not, or if none is left."""
    phases = dict(zip(replicas, row[1] or (None,) * len(replicas), strict=True))
    for broker_id in brokers:
        if broker_id not in phases or to not in REPLICA_TRANSITIONS[phases[broker_id] or ReplicaPhase.NON_EXISTENT]:
            return None
        phases[broker_id] = None if to is ReplicaPhase.NON_EXISTENT else to
    after = row[0], tuple(phases.values()) if any(phases.values()) else ()
    return None if after == NO_ROW else after


def _with(
    phases: tuple[ReplicaPhase | None, ...], place: int, phase: ReplicaPhase | None
) -> tuple[ReplicaPhase | None, ...]:
    return (*phases[:place], phase, *phases[place + 1 :])
