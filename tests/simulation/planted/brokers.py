"""Bugs in what the controller does about brokers: starts, failures, shutdowns, lost disks and directories."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def the_dead_are_announced_after_the_elections(patch: pytest.MonkeyPatch) -> None:
    """Elect new leaders before brokers are told who is alive."""
    told = 'yield from apply("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])'
    elected = "yield from leadership.replace_offline(context, tps, gone, only_cleanly=only_cleanly)"
    edit(
        patch,
        "controller.handlers.brokers:brokers_failed",
        (f"    {told}\n", ""),
        (elected, f"{elected}\n    {told}"),
    )


def a_bounced_broker_has_not_failed(patch: pytest.MonkeyPatch) -> None:
    """Start the new incarnation of a broker without the failure of the old one."""
    edit(
        patch,
        "controller.handlers.brokers:broker_change",
        ("    yield from brokers_failed(context, ended, only_cleanly=True)\n", ""),
    )


def a_dead_follower_is_not_listed_as_offline(patch: pytest.MonkeyPatch) -> None:
    """Publish nothing where a failure changes only which replicas are offline."""
    edit(
        patch,
        "controller.model.batches:LeadershipSteps.publications",
        ("tuple(states)", "tuple(compress(states, [choice.is_change for choice in self._choices]))"),
    )


def new_storage_is_recorded_before_the_isrs_shrink(patch: pytest.MonkeyPatch) -> None:
    """Record a broker's new storage first, and remove it from the ISRs afterwards."""
    expelled = "yield from _expel(context, empty)"
    recorded = 'stale = yield from commit_each("storage", steps, on_rejected=rejected.extend)'
    edit(
        patch,
        "controller.handlers.storage:admit",
        (f"        {expelled}\n", ""),
        (recorded, f"{recorded}\n        {expelled}"),
    )


def a_late_shutdown_hits_the_next_incarnation(patch: pytest.MonkeyPatch) -> None:
    """Accept a controlled shutdown of a broker under an earlier epoch."""
    edit(
        patch,
        "controller.handlers.controlled_shutdown:_admit",
        ("if broker_epoch < epoch:", "if broker_epoch < 0:"),
    )


def a_lost_directory_is_replaced_by_an_empty_log(patch: pytest.MonkeyPatch) -> None:
    """Send isNew to all replicas of a broker that has lost a log directory."""
    edit(
        patch,
        "controller.handlers.log_dirs:log_dir_event_notification",
        ("orders_of_all(context, states, ids, ())", "orders_of_all(context, states, ids, ids)"),
    )


def a_mended_directory_brings_no_leader(patch: pytest.MonkeyPatch) -> None:
    """Do not elect where a replica's log can be used again."""
    edit(
        patch,
        "controller.handlers.failed_replicas:_go_on",
        ("    yield from leadership.bring_online(context)\n", ""),
    )


BUGS = (
    the_dead_are_announced_after_the_elections,
    a_bounced_broker_has_not_failed,
    a_dead_follower_is_not_listed_as_offline,
    new_storage_is_recorded_before_the_isrs_shrink,
    a_late_shutdown_hits_the_next_incarnation,
    a_lost_directory_is_replaced_by_an_empty_log,
    a_mended_directory_brings_no_leader,
)
