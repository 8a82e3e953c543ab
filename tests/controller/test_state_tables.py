"""The tables of the state machines compared with Kafka's, and transitions that they do not contain."""

from __future__ import annotations

from itertools import product

import pytest
from structlog.testing import capture_logs

from controller.model.context import ControllerContext
from controller.model.facts import PartitionsFound, PartitionsMoved, ReplicasMoved, TopicWritten
from controller.model.state_machines import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS, PartitionPhase, ReplicaPhase
from transport.messages import BrokerEndpoint
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store.formats import TopicZnode

TP = TopicPartition("orders", 0)

# Rows: from. Columns: to. V = performed, x = refused.
PARTITION_MATRIX = """
             NonExistent New Online Offline
NonExistent  x           V   x      x
New          x           x   V      V
Online       x           x   V      V
Offline      V           x   V      V
"""

REPLICA_MATRIX = """
                     NonExistent New Online Offline DeletionStarted DeletionSuccessful DeletionIneligible
NonExistent          x           V   x      x       x               x                  x
New                  x           x   V      V       x               x                  x
Online               x           x   V      V       x               x                  x
Offline              x           x   V      V       V               x                  V
DeletionStarted      x           x   x      x       x               V                  V
DeletionSuccessful   V           x   x      x       x               x                  x
DeletionIneligible   x           x   V      V       x               x                  x
"""


def cells(matrix: str) -> dict[tuple[str, str], bool]:
    header, *rows = (line.split() for line in matrix.strip().splitlines())
    return {(row[0], to): cell == "V" for row in rows for to, cell in zip(header, row[1:], strict=True)}


PARTITION_CELLS = {
    (before, to): cells(PARTITION_MATRIX)[before.value.removesuffix("Partition"), to.value.removesuffix("Partition")]
    for before, to in product(PartitionPhase, repeat=2)
}


def short(phase: ReplicaPhase) -> str:
    return phase.value.removeprefix("Replica").removesuffix("Replica")


REPLICA_CELLS = {
    (before, to): cells(REPLICA_MATRIX)[short(before), short(to)] for before, to in product(ReplicaPhase, repeat=2)
}


def context() -> ControllerContext:
    memory = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), epoch=1, epoch_version=1)
    memory.apply(TopicWritten("orders", TopicZnode({0: ReplicaAssignment((1,))}, "id"), 0))
    return memory


@pytest.mark.requirement("D3")
def test_the_tables_have_a_row_for_every_state() -> None:
    assert set(PARTITION_TRANSITIONS) == set(PartitionPhase)
    assert set(REPLICA_TRANSITIONS) == set(ReplicaPhase)


@pytest.mark.requirement("D3")
@pytest.mark.parametrize(("cell", "is_legal"), PARTITION_CELLS.items(), ids=str)
def test_a_partition_takes_legal_transitions_and_no_others(
    cell: tuple[PartitionPhase, PartitionPhase], is_legal: bool
) -> None:
    before, to = cell
    memory = context()
    if before is not PartitionPhase.NON_EXISTENT:
        memory.apply(PartitionsFound([TP], [None], [(before, ())]))

    with capture_logs() as logs:
        memory.apply(PartitionsMoved([TP], to))

    assert (to in PARTITION_TRANSITIONS[before]) is is_legal
    assert memory.partition_phases.get(TP, PartitionPhase.NON_EXISTENT) is (to if is_legal else before)
    assert [(log["log_level"], log["partition"], log["before"], log["to"]) for log in logs] == (
        [] if is_legal else [("error", "orders-0", before.value, to.value)]
    )


@pytest.mark.requirement("D3")
@pytest.mark.parametrize(("cell", "is_legal"), REPLICA_CELLS.items(), ids=str)
def test_a_replica_takes_legal_transitions_and_no_others(
    cell: tuple[ReplicaPhase, ReplicaPhase], is_legal: bool
) -> None:
    before, to = cell
    memory = context()
    if before is not ReplicaPhase.NON_EXISTENT:
        memory.apply(PartitionsFound([TP], [None], [(None, (before,))]))

    with capture_logs() as logs:
        memory.apply(ReplicasMoved.on(1, [TP], to))

    assert (to in REPLICA_TRANSITIONS[before]) is is_legal
    assert memory.replica_phases.get((TP, 1), ReplicaPhase.NON_EXISTENT) is (to if is_legal else before)
    assert [(log["log_level"], log["partition"], log["broker"], log["before"], log["to"]) for log in logs] == (
        [] if is_legal else [("error", "orders-0", 1, before.value, to.value)]
    )


@pytest.mark.requirement("D3")
def test_a_replica_that_does_not_exist_any_more_leaves_no_trace() -> None:
    memory = context()
    memory.apply(PartitionsFound([TP], [None], [(None, (ReplicaPhase.DELETION_SUCCESSFUL,))]))
    memory.apply(ReplicasMoved.on(1, [TP], ReplicaPhase.NON_EXISTENT))
    assert memory.replica_phases == {}
