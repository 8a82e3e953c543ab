"""Bugs in elections."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def an_unclean_election_passes_over_a_live_member(patch: pytest.MonkeyPatch) -> None:
    """Elect uncleanly wherever that is allowed, even if a member of the ISR could lead."""
    edit(
        patch,
        "controller.model.elections:offline",
        ("if leader is not None:", "if leader is not None and not candidate.allow_unclean:"),
    )


def the_preferred_leader_is_the_first_that_lives(patch: pytest.MonkeyPatch) -> None:
    """Take the first live replica for the preferred one."""
    edit(
        patch,
        "controller.model.elections:preferred",
        ("first = candidate.replicas[:1]", "first = candidate.online[:1]"),
    )


def a_refused_election_is_held(patch: pytest.MonkeyPatch) -> None:
    """Hold the elections that are refused because they are not needed."""
    edit(
        patch,
        "controller.handlers.leader_elections:elect",
        ("for tp, fault in faults.items() if fault is None]", "for tp in faults if tp in context.leadership]"),
        ("for tp in wanted}\n    return", "for tp in wanted if faults[tp] is None}\n    return"),
    )


def a_leader_without_its_data_continues(patch: pytest.MonkeyPatch) -> None:
    """Let a live leader continue although it has lost its data."""
    edit(
        patch,
        "controller.model.elections:without_data",
        ("current.leader in isr and current.leader in candidate.served", "current.leader in candidate.served"),
    )


BUGS = (
    an_unclean_election_passes_over_a_live_member,
    the_preferred_leader_is_the_first_that_lives,
    a_refused_election_is_held,
    a_leader_without_its_data_continues,
)
