"""Bugs in AlterPartition."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def a_stale_partition_epoch_is_accepted(patch: pytest.MonkeyPatch) -> None:
    """Grant an ISR that a leader asked for before the last change: late, or twice."""
    edit(
        patch,
        "controller.handlers.alter_partition:_epoch_error",
        ("if item.partition_epoch < current.partition_epoch:", "if item.partition_epoch < 0:"),
    )


def a_dead_broker_joins_an_isr(patch: pytest.MonkeyPatch) -> None:
    """Grant an ISR with replicas that are not online."""
    edit(
        patch,
        "controller.handlers.alter_partition:_isr_error",
        ("return None if able.union(stays).issuperset(isr) else", "return None if able else"),
    )


def a_refused_isr_is_not_read_again(patch: pytest.MonkeyPatch) -> None:
    """Keep the known state of a partition that others have changed in the store."""
    edit(
        patch,
        "controller.handlers.alter_partition:_write",
        ("    yield from refresh(context, stale)\n", ""),
    )


BUGS = (
    a_stale_partition_epoch_is_accepted,
    a_dead_broker_joins_an_isr,
    a_refused_isr_is_not_read_again,
)
