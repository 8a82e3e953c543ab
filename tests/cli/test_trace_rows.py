"""The table of a move, taken from a commit trace."""

from __future__ import annotations

import pytest

from controller.admin.move_rows import Stage, stage_of
from klamm.cli.demo.trace_rows import Seen, rows
from transport.messages import PartitionState, TracedCommit

TARGET = frozenset({4, 5, 6})
BOTH, ORIGIN = (4, 5, 6, 1, 2, 3), (1, 2, 3)


def state(
    replicas: tuple[int, ...], leader: int, isr: tuple[int, ...], *, moving: bool = True, leader_epoch: int = 0
) -> PartitionState:
    adding, removing = ((4, 5, 6), (1, 2, 3)) if moving else ((), ())
    return PartitionState("orders", "id", 0, 1, leader, leader_epoch, isr, 0, replicas, adding, removing)


@pytest.mark.parametrize(
    ("partition", "stage"),
    [
        (state(ORIGIN, 1, ORIGIN, moving=False), Stage.INITIAL),
        (state(BOTH, 1, ORIGIN), Stage.BRING_IN),
        (state(BOTH, 1, (1, 2, 3, 5)), Stage.BRING_IN),
        (state(BOTH, 1, (1, 2, 3, 6, 5, 4)), Stage.CAUGHT_UP),
        (state(BOTH, 5, (1, 2, 3, 6, 5, 4)), Stage.LED_INSIDE),
        (state(BOTH, 5, (6, 5, 4)), Stage.TAKEN_OUT),
        (state((4, 5, 6), 5, (6, 5, 4), moving=False), Stage.DONE),
    ],
)
def test_a_stage_is_told_by_the_state_alone(partition: PartitionState, stage: Stage) -> None:
    assert stage_of(partition, TARGET) is stage


def trace(*commits: tuple[str, PartitionState], controller_id: int = 1001, zxid: int = 100) -> list[Seen]:
    return [
        Seen(TracedCommit(n, controller_id, 1, "test", name, zxid + n, (("orders", n),), (partition,)), n)
        for n, (name, partition) in enumerate(commits)
    ]


def test_isr_growth_and_the_first_step_make_no_rows_of_their_own() -> None:
    seen = trace(
        ("create", state(ORIGIN, 1, ORIGIN, moving=False)),
        ("U1", state(BOTH, 1, ORIGIN, leader_epoch=1)),
        ("ISR", state(BOTH, 1, (1, 2, 3, 4), leader_epoch=1)),
        ("ISR", state(BOTH, 1, BOTH, leader_epoch=1)),
    )
    found = rows(seen, "orders", 0, TARGET)
    assert [(row.stage, row.zxid) for row in found] == [
        (Stage.INITIAL, 100),
        (Stage.BRING_IN, 101),
        (Stage.CAUGHT_UP, 103),
    ]


def test_a_second_controller_that_begins_again_makes_no_second_row() -> None:
    first = trace(
        ("create", state(ORIGIN, 1, ORIGIN, moving=False)),
        ("U1", state(BOTH, 1, ORIGIN, leader_epoch=1)),
    )
    second = trace(
        ("loaded", state(BOTH, 1, ORIGIN, leader_epoch=1)),
        ("A1", state(BOTH, 1, ORIGIN, leader_epoch=2)),
        controller_id=1002,
        zxid=101,
    )
    found = rows([*second, *first], "orders", 0, TARGET)
    assert [(row.stage, row.zxid, row.controller_id) for row in found] == [
        (Stage.INITIAL, 100, 1001),
        (Stage.BRING_IN, 101, 1001),
    ]


def test_other_partitions_make_no_rows() -> None:
    assert rows(trace(("create", state(ORIGIN, 1, ORIGIN, moving=False))), "invoices", 0, TARGET) == []
