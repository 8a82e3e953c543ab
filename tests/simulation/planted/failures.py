"""Bugs in what the controller does where a broker fails to carry out an order for a replica."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit

HANDLERS = "controller.handlers.failed_replicas"


def failures_of_services_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Take note of unusable logs alone, whatever else a service raises."""
    edit(
        patch,
        "controller.gathered:Outcomes._is_failure",
        (
            "return error is ErrorCode.KAFKA_STORAGE_ERROR if self.are_kafkas else error not in NOT_FAILURES",
            "return error is ErrorCode.KAFKA_STORAGE_ERROR",
        ),
    )


def failed_orders_are_not_repeated(patch: pytest.MonkeyPatch) -> None:
    """Wait for an order to lead or follow that follows from something else."""
    edit(patch, f"{HANDLERS}:_order_again", ("facts=facts, publications=orders", "facts=facts"))


def a_failed_leader_stays(patch: pytest.MonkeyPatch) -> None:
    """Elect no other leader where the leader has failed."""
    edit(
        patch,
        f"{HANDLERS}:_replace_leaders",
        ("    yield from leadership.elect_leaders(context, leaderless, only_cleanly=True)\n", ""),
    )


def leadership_goes_back_to_a_failed_replica(patch: pytest.MonkeyPatch) -> None:
    """Hold preferred elections without regard to failures."""
    edit(
        patch,
        "controller.model.elections:preferred",
        ("first[0] in candidate.online and", "first[0] in (*candidate.online, *candidate.failed) and"),
    )


def a_failed_replica_may_lead_again_at_once(patch: pytest.MonkeyPatch) -> None:
    """Let a replica that failed to lead try again without a delay."""
    edit(
        patch,
        "controller.model.replica_failures:ReplicaFailure.next_try",
        ("first = LEAD_AGAIN_SECONDS if waits_to_lead", "first = 0.0 if waits_to_lead"),
    )


def failed_replicas_never_lead_again(patch: pytest.MonkeyPatch) -> None:
    """Let a replica that failed to lead follow for good."""
    edit(patch, f"{HANDLERS}:_let_lead", ("for tp, broker_id in oldest:", "for tp, broker_id in oldest[:0]:"))


def a_failure_to_lead_is_forgotten_when_a_replica_follows(patch: pytest.MonkeyPatch) -> None:
    """Take a replica that has failed to follow since, and recovered, for one that can lead."""
    edit(
        patch,
        "controller.model.replica_failures:ReplicaFailure.after",
        ("(before if is_to_lead else before.to_lead) if self.keeps_from_following", "None if is_to_lead"),
    )


BUGS = (
    failures_of_services_do_not_count,
    failed_orders_are_not_repeated,
    a_failed_leader_stays,
    leadership_goes_back_to_a_failed_replica,
    a_failed_replica_may_lead_again_at_once,
    failed_replicas_never_lead_again,
    a_failure_to_lead_is_forgotten_when_a_replica_follows,
)
