"""Compares expectations with the state of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import asdict

from simulator.administration import partition_named
from simulator.cluster import SimulatedCluster
from simulator.scenario.model import Expectations, PartitionExpectation
from simulator.scenario.outcome import Chronicle
from transport.messages import PartitionState
from transport.metadata import TopicPartition


def misses(expected: Expectations, cluster: SimulatedCluster, chronicle: Chronicle) -> list[str]:
    """Return the expectations that do not hold, excluding the refusal of an action."""
    return [
        *(text for name, fields in expected.partitions.items() for text in _partition(name, fields, cluster)),
        *_rounds(expected, chronicle),
        *_states(expected, chronicle),
        *_disks(expected, cluster),
        *_records(expected, cluster),
        *_unclean(expected, cluster),
        *_controller(expected, cluster),
    ]


def count(expected: Expectations) -> int:
    """Return the number of single expectations."""
    fields = sum(value is not None for p in expected.partitions.values() for value in asdict(p).values())
    others = len(expected.reaches) + len(expected.skips) + len(expected.disks) + len(expected.records)
    others += len(expected.passes) + len(expected.never)
    return (
        fields + others + sum(value is not None for value in (expected.controller, expected.refused, expected.unclean))
    )


def _partition(name: str, expected: PartitionExpectation, cluster: SimulatedCluster) -> Iterator[str]:
    state = cluster.partition(name)
    if state is None:
        yield f"{name} has no state"
    else:
        yield from _differences(name, expected, state)


def _differences(name: str, expected: PartitionExpectation, state: PartitionState) -> Iterator[str]:
    for field in ("replicas", "adding_replicas", "removing_replicas", "leader_epoch", "controller_epoch"):
        wanted, there = getattr(expected, field), getattr(state, field)
        if wanted is not None and there != wanted:
            yield f"{name}: {field} is {_text(there)}, expected {_text(wanted)}"
    if expected.leader is not None and state.leader not in expected.leader:
        yield f"{name}: leader is {state.leader}, expected {' or '.join(map(str, expected.leader))}"
    if expected.isr is not None and set(state.isr) != set(expected.isr):
        yield f"{name}: isr is {_text(state.isr)}, expected {_text(expected.isr)} in any order"


def _rounds(expected: Expectations, chronicle: Chronicle) -> Iterator[str]:
    for name, wanted in expected.reaches.items():
        seen = [round_ for tp, round_ in chronicle.rounds if tp == partition_named(name)]
        missing = _first_missing(wanted, seen)
        if missing is not None:
            yield f"{name}: {missing} did not follow as expected; the rounds were {_text(seen)}"
    for name, unwanted in expected.skips.items():
        tp = partition_named(name)
        for round_ in unwanted:
            if (tp, round_) in chronicle.decided:
                yield f"{name}: {round_} was decided, but must be skipped"


def _states(expected: Expectations, chronicle: Chronicle) -> Iterator[str]:
    for name, path in expected.passes.items():
        rest = iter(_states_of(name, chronicle))
        for place, wanted in enumerate(path, 1):
            if not any(_is_like(wanted, state) for state in rest):
                yield f"{name} did not pass through state {place} of {len(path)}"
                break
    for name, unwanted in expected.never.items():
        if any(_is_like(unwanted, state) for state in _states_of(name, chronicle)):
            yield f"{name} was in a state that must never occur"


def _states_of(name: str, chronicle: Chronicle) -> list[PartitionState]:
    return [state for state in chronicle.states if state.tp == partition_named(name)]


def _is_like(expected: PartitionExpectation, state: PartitionState) -> bool:
    return not any(_differences("", expected, state))


def _first_missing(wanted: Sequence[str], seen: Sequence[str]) -> str | None:
    rest = iter(seen)
    return next((round_ for round_ in wanted if round_ not in rest), None)


def _disks(expected: Expectations, cluster: SimulatedCluster) -> Iterator[str]:
    for broker_id, names in expected.disks.items():
        there: list[TopicPartition] = sorted(cluster.brokers[broker_id].disk.logs)
        if there != sorted(partition_named(name) for name in names):
            yield f"the disk of broker {broker_id} holds {_text([str(tp) for tp in there])}, expected {_text(names)}"


def _records(expected: Expectations, cluster: SimulatedCluster) -> Iterator[str]:
    for name, count in expected.records.items():
        state = cluster.partition(name)
        leader = None if state is None else cluster.brokers.get(state.leader)
        log = None if leader is None else leader.disk.logs.get(partition_named(name))
        if log is None:
            yield f"{name} has no leader with a log, expected {count} records"
        elif log.end_offset != count:
            yield f"{name} has {log.end_offset} records, expected {count}"


def _unclean(expected: Expectations, cluster: SimulatedCluster) -> Iterator[str]:
    there, _ = cluster.world.safety.losses()
    if expected.unclean is not None and there != expected.unclean:
        yield f"there were {there} unclean elections, expected {expected.unclean}"


def _controller(expected: Expectations, cluster: SimulatedCluster) -> Iterator[str]:
    active = cluster.active_controller
    if expected.controller is not None and active not in expected.controller:
        yield f"the active controller is {active}, expected {' or '.join(map(str, expected.controller))}"


def _text(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple | list) else str(value)
