"""Bugs in what follows from a write that an ACL forbids."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def ids_of_producers_are_given_though_they_cannot_be_recorded(patch: pytest.MonkeyPatch) -> None:
    """Give a broker a block of ids that the next broker gets too."""
    edit(
        patch,
        "controller.handlers.producer_ids:allocate_producer_ids",
        ("on_rejected=_refuse", "on_rejected=lambda rejected: None"),
    )


def a_stray_that_cannot_be_recalled_is_deleted(patch: pytest.MonkeyPatch) -> None:
    """Take a stray for one although it is assigned again, if its record cannot be removed."""
    ignored = "yield from _ignore([stray for stray in kept if stray in context.strays], StrayRecalled)"
    edit(patch, "controller.handlers.strays:take_back_assigned", (f"        {ignored}\n", ""))


def a_marker_that_stays_deletes_the_next_topic(patch: pytest.MonkeyPatch) -> None:
    """Heed a marker that is older than the topic of its name."""
    edit(patch, "controller.handlers.deletion_markers:_of_earlier_topics", ("if marker < topic", "if marker < 0"))


BUGS = (
    ids_of_producers_are_given_though_they_cannot_be_recorded,
    a_stray_that_cannot_be_recalled_is_deleted,
    a_marker_that_stays_deletes_the_next_topic,
)
