"""Bugs in reassignments."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def a_cancel_ignores_min_isr(patch: pytest.MonkeyPatch) -> None:
    """Cancel at once if anybody in the ISR stays, even fewer than min.insync.replicas."""
    edit(
        patch,
        "controller.handlers.reassignments:_in_safety",
        ("if len(left) >= min(context.min_isr(tp.topic), len(isr)):", "if left:"),
    )


def an_override_forgets_its_strays(patch: pytest.MonkeyPatch) -> None:
    """Do not record the replicas that an override or a cancel abandons."""
    edit(
        patch,
        "controller.handlers.reassignments:_strays",
        ("strays.leave(context, tp, change.choice.stopped)", "strays.leave(context, tp, ())"),
    )


def adding_replicas_stay_new(patch: pytest.MonkeyPatch) -> None:
    """Send isNew to adding replicas that are in the ISR."""
    edit(
        patch,
        "controller.model.reassignment:beginners",
        ("for replica in moving.adding_replicas if replica not in isr", "for replica in moving.adding_replicas"),
    )


def a_move_waits_for_the_adding_replicas_only(patch: pytest.MonkeyPatch) -> None:
    """Begin phase B although a replica that stays is not in the ISR."""
    edit(
        patch,
        "controller.model.reassignment:is_caught_up",
        ("moving.target_replicas", "moving.adding_replicas"),
    )


def an_override_may_add_dead_brokers(patch: pytest.MonkeyPatch) -> None:
    """Take the replicas that a move adds for replicas that the partition has."""
    edit(
        patch,
        "controller.model.faults:target_fault",
        ("if r not in current.origin_replicas and", "if r not in current.replicas and"),
    )


def a_new_controller_advances_no_move(patch: pytest.MonkeyPatch) -> None:
    """Advance, at a failover, the moves that have just begun, and not those that the last controller left."""
    edit(patch, "controller.handlers.failover:failover", ("if tp not in begun]", "if tp in begun]"))


BUGS = (
    a_cancel_ignores_min_isr,
    an_override_forgets_its_strays,
    adding_replicas_stay_new,
    a_move_waits_for_the_adding_replicas_only,
    an_override_may_add_dead_brokers,
    a_new_controller_advances_no_move,
)
