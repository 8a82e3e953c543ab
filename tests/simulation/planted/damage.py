"""Bugs that damaged and forbidden znodes reveal, and those of large writes."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def a_damaged_registration_is_not_expected(patch: pytest.MonkeyPatch) -> None:
    """Let a registration that cannot be decoded end the office."""
    edit(
        patch,
        "controller.handlers.brokers:_read_registrations",
        ("except formats.UndecodableZnode as fault:", "except UnicodeDecodeError as fault:"),
    )


def damaged_settings_are_not_expected(patch: pytest.MonkeyPatch) -> None:
    """Let settings that cannot be decoded end the office."""
    edit(
        patch,
        "controller.handlers.configs:decode_layer",
        ("except formats.UndecodableZnode as fault:", "except UnicodeDecodeError as fault:"),
    )


def what_an_acl_forbids_counts_as_written(patch: pytest.MonkeyPatch) -> None:
    """Apply and publish the steps that the store will never accept."""
    edit(
        patch,
        "controller.node.round_runner:_Round.settle",
        ("members.only(result.committed)", "members.only((*result.committed, *result.rejected))"),
    )


def chunks_have_no_limit_of_bytes(patch: pytest.MonkeyPatch) -> None:
    """Count the operations of a multi, and not their bytes."""
    edit(
        patch,
        "transport.store.chunks:plan_chunks",
        ("or len(group) > room_ops or weight > room_bytes:", "or len(group) > room_ops:"),
    )


def what_did_not_fit_is_cut_short(patch: pytest.MonkeyPatch) -> None:
    """Forget the first partition that did not fit into the multi of its topic."""
    edit(
        patch,
        "controller.handlers.reassignments:write_assignments",
        ("[len(written.changes) :]", "[len(written.changes) + 1 :]"),
    )


def an_unusable_registration_is_a_dead_broker(patch: pytest.MonkeyPatch) -> None:
    """Take a broker with a registration that cannot be used for dead."""
    edit(
        patch,
        "controller.handlers.brokers:_read_registrations",
        ("            found.unusable.append(_unusable(id_, znode, str(fault)))", "            del fault"),
    )


def failed_members_stay_when_a_held_leader_leaves(patch: pytest.MonkeyPatch) -> None:
    """Keep members of an ISR that died or failed while their leader had no usable address."""
    edit(patch, "controller.model.choosing:candidate", ("gone = unserved(context, tp) if is_held else ()", "gone = ()"))


BUGS = (
    a_damaged_registration_is_not_expected,
    damaged_settings_are_not_expected,
    what_an_acl_forbids_counts_as_written,
    chunks_have_no_limit_of_bytes,
    what_did_not_fit_is_cut_short,
    an_unusable_registration_is_a_dead_broker,
    failed_members_stay_when_a_held_leader_leaves,
)
