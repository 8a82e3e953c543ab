"""The states of all partitions and replicas, of which a controller keeps more than of anything else.

Most partitions are in the same states as others. A row has the state of a partition and those of its replicas, in the
order of its assignment, and equal rows are one object: a partition takes one entry of a dictionary. A replica that is
not assigned has no state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, repeat
from typing import Final, TypeVar

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

Key = TypeVar("Key")

NO_ROW: Final[Row] = (None, ())


@define
class Phases:
    """The rows by partition. `topics` are those of the context, which reports every change of an assignment."""

    topics: Mapping[str, KnownTopic]
    rows: dict[TopicPartition, Row] = field(factory=dict, init=False)
    known: dict[Row, Row] = field(factory=dict, init=False, eq=False)

    def of_all(self, tps: Iterable[TopicPartition]) -> list[Row]:
        """Return the row of each of many partitions."""
        rows = self.rows
        return [rows.get(tp, NO_ROW) for tp in tps]

    def replicas_of_all(self, tps: Iterable[TopicPartition]) -> list[tuple[int, ...]]:
        """Return the assigned replicas of each of many partitions."""
        return [assignment.replicas for assignment in assignments_of(self.topics, tps)]

    def put_all(self, tps: Sequence[TopicPartition], rows: Sequence[Row]) -> None:
        """Set the states of many partitions and of their assigned replicas."""
        # A caller has few rows, many times each.
        keys = list(map(id, rows))
        self._put(tps, keys, dict(zip(keys, rows, strict=True)))

    def _put(self, tps: Sequence[TopicPartition], keys: Sequence[Key], rows: Mapping[Key, Row]) -> None:
        """Set the states of many partitions, each to that of the `rows` which has its key."""
        shared = {key: self._shared(row) for key, row in rows.items()}
        self.rows.update(zip(tps, map(shared.__getitem__, keys), strict=True))
        if NO_ROW in shared.values():
            for tp in [tp for tp, key in zip(tps, keys, strict=True) if shared[key] == NO_ROW]:
                self.rows.pop(tp, None)

    def _shared(self, row: Row) -> Row:
        """Return one object for equal rows."""
        phase, replicas = row
        row = phase, replicas if any(replicas) else ()
        return self.known.setdefault(row, row)

    def reassign(self, tp: TopicPartition, old: Sequence[int], new: Sequence[int]) -> None:
        """Follow a change of the assigned replicas: those no longer assigned lose their states."""
        partition, phases = self.rows.get(tp, NO_ROW)
        found = dict(zip(old, phases, strict=True)) if phases else {}
        row = self._shared((partition, tuple([found.get(r) for r in new])))
        if row == NO_ROW:
            self.rows.pop(tp, None)
        else:
            self.rows[tp] = row

    def move_partitions(self, tps: Sequence[TopicPartition], to: PartitionPhase) -> None:
        """Let partitions enter a state, except those to which the table of states forbids it."""
        rows = self.of_all(tps)
        legal = {row for row in set(rows) if to in PARTITION_TRANSITIONS[row[0] or PartitionPhase.NON_EXISTENT]}
        after = {row: (to, row[1]) if row in legal else row for row in set(rows)}
        for tp, row in zip(tps, rows, strict=True) if len(legal) < len(after) else ():
            if row not in legal:
                before = row[0] or PartitionPhase.NON_EXISTENT
                log.error("illegal partition transition", partition=str(tp), before=before.value, to=to.value)
        self._put(tps, rows, after)

    def move_replicas(
        self, tps: Sequence[TopicPartition], brokers: Sequence[tuple[int, ...]], to: ReplicaPhase
    ) -> None:
        """Let the replicas of partitions on `brokers`, which has those of each, enter a state.

        Those that are not assigned, and those to which the table of states forbids it, do not.
        """
        moves = list(zip(self.of_all(tps), self.replicas_of_all(tps), brokers, strict=True))
        # The same rows occur again and again, so each transition of a row is made once.
        after = {move: _moved(*move, to) for move in set(moves)}
        for tp, move in zip(tps, moves, strict=True) if any(refused for _, refused in after.values()) else ():
            for broker_id, before in after[move][1]:
                way = {"before": before.value, "to": to.value}
                log.error("illegal replica transition", partition=str(tp), broker=broker_id, **way)
        self._put(tps, moves, {move: row for move, (row, _) in after.items()})


def _moved(
    row: Row, replicas: tuple[int, ...], brokers: tuple[int, ...], to: ReplicaPhase
) -> tuple[Row, list[tuple[int, ReplicaPhase]]]:
    """Return a row after the replicas on `brokers` have entered a state, and those that may not, with their states."""
    phases = dict(zip(replicas, row[1] or (None,) * len(replicas), strict=True))
    refused = []
    for broker_id in brokers:
        before = phases.get(broker_id) or ReplicaPhase.NON_EXISTENT
        if broker_id in phases and to in REPLICA_TRANSITIONS[before]:
            phases[broker_id] = None if to is ReplicaPhase.NON_EXISTENT else to
        else:
            refused.append((broker_id, before))
    return (row[0], tuple(phases.values())), refused


class PartitionPhases(Mapping[TopicPartition, PartitionPhase]):
    """The state of each partition that has one."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._rows = phases.rows

    def __getitem__(self, tp: TopicPartition) -> PartitionPhase:
        phase = self._rows[tp][0]
        if phase is None:
            raise KeyError(tp)
        return phase

    def __contains__(self, tp: object) -> bool:
        return self._rows.get(tp, NO_ROW)[0] is not None  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[TopicPartition]:
        return (tp for tp, (phase, _) in self._rows.items() if phase is not None)

    def __len__(self) -> int:
        return sum(phase is not None for phase, _ in self._rows.values())

    def of_all(self, tps: Iterable[TopicPartition]) -> list[PartitionPhase | None]:
        """Return the state of each of many partitions, None for one that has none."""
        return [row[0] for row in self._phases.of_all(tps)]

    def those_in(self, phases: Collection[PartitionPhase]) -> list[TopicPartition]:
        """Return the partitions in one of these states."""
        # Equal rows are one object, and few of them occur.
        wanted = {id(row) for row in self._phases.known if row[0] in phases}
        return [tp for tp, row in self._rows.items() if id(row) in wanted] if wanted else []


class ReplicaPhases(Mapping[Replica, ReplicaPhase]):
    """The state of each replica that has one."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._rows = phases.rows

    def __getitem__(self, replica: Replica) -> ReplicaPhase:
        tp, broker_id = replica
        phase = dict(zip(assignment_of(self._phases.topics, tp).replicas, self.of(tp), strict=False)).get(broker_id)
        if phase is None:
            raise KeyError(replica)
        return phase

    def __iter__(self) -> Iterator[Replica]:
        for tp in self._rows:
            held = zip(assignment_of(self._phases.topics, tp).replicas, self.of(tp), strict=False)
            yield from ((tp, broker_id) for broker_id, phase in held if phase is not None)

    def __len__(self) -> int:
        return sum(len(phases) - phases.count(None) for _, phases in self._rows.values())

    def of(self, tp: TopicPartition) -> tuple[ReplicaPhase | None, ...]:
        """Return the states of a partition's assigned replicas, in their order: None for one without a state."""
        return self._rows.get(tp, NO_ROW)[1] or (None,) * len(assignment_of(self._phases.topics, tp).replicas)

    def are_all(self, tps: Iterable[TopicPartition], phase: ReplicaPhase) -> bool:
        """Return whether all assigned replicas of partitions are in a state."""
        rows = map(self._rows.get, tps, repeat(NO_ROW))
        return all(set(row[1]) == {phase} for row, _ in groupby(rows))

    def those_in(self, phase: ReplicaPhase, broker_id: int, tps: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return those of the partitions whose assigned replica on a broker is in a state."""
        kinds = list(zip(self._phases.of_all(tps), self._phases.replicas_of_all(tps), strict=True))
        others = {kind for kind in set(kinds) if (broker_id, phase) not in zip(kind[1], kind[0][1], strict=False)}
        # Mostly there are none: a broker answers what it was told.
        return [tp for tp, kind in zip(tps, kinds, strict=True) if kind not in others] if others else list(tps)

    def those_on(self, broker_id: int, tps: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return those of the partitions whose replica on a broker has a state."""
        if any(not phases or None in phases for phases in {phases for _, phases in self._phases.of_all(tps)}):
            return [tp for tp in tps if (tp, broker_id) in self]
        of_all = self._phases.replicas_of_all(tps)
        return [tp for tp, replicas in zip(tps, of_all, strict=True) if broker_id in replicas]
