"""Bugs in the controller's process: rounds, sessions, watches, offices."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def the_end_of_a_session_waits_for_its_turn(patch: pytest.MonkeyPatch) -> None:
    """Queue the end of the session behind other events, and let the running one finish."""
    edit(
        patch,
        "controller.node.service:ControllerService._store_changed",
        ("self._queue.preempt_and_put(SessionEnded(), cancel_running=True)", "self._queue.tell(SessionEnded())"),
    )


def a_lost_answer_counts_as_success(patch: pytest.MonkeyPatch) -> None:
    """Take a multi whose answer was lost for committed, without looking."""
    edit(
        patch,
        "transport.store.commit:commit_chunk",
        ("if in_doubt and has_landed(ops, found):", "if in_doubt:"),
    )


def conflicts_are_not_decided_again(patch: pytest.MonkeyPatch) -> None:
    """Drop the steps that the store has refused."""
    edit(
        patch,
        "controller.node.round_runner:_Round.settle",
        ("        self.refused += [members[i] for i in result.conflicts]\n", ""),
    )


def a_topic_is_watched_once(patch: pytest.MonkeyPatch) -> None:
    """Read a changed topic without watching it again."""
    edit(
        patch,
        "controller.handlers.topics:refresh_topics",
        ("existing(paths.topic, known, watch=True)", "existing(paths.topic, known)"),
    )


def a_write_of_others_is_taken_for_an_echo(patch: pytest.MonkeyPatch) -> None:
    """Take whatever happens to a znode that we have once written for our own writing."""
    edit(
        patch,
        "transport.store.listeners:Listeners._pass_on",
        ("if events is not held]", "if events is not held or not held]"),
    )


def a_resignation_is_not_fenced(patch: pytest.MonkeyPatch) -> None:
    """Delete `/controller` when resigning, whoever holds it by now."""
    edit(
        patch,
        "controller.node.controller_election:resign",
        ("[Check(paths.CONTROLLER_EPOCH, won.version), Delete(paths.CONTROLLER)]", "[Delete(paths.CONTROLLER)]"),
    )


def no_store_at_the_start_is_fatal(patch: pytest.MonkeyPatch) -> None:
    """Let a failure of the store end a controller that has never been in office."""
    failed = 'log.warning("metadata store failed: loading again", during=event.name, error=str(error))'
    edit(
        patch,
        "controller.node.service:ControllerService._process",
        (failed, f"{failed}\n            if self._standby is None and self._office is None:\n                raise"),
    )


BUGS = (
    the_end_of_a_session_waits_for_its_turn,
    a_lost_answer_counts_as_success,
    conflicts_are_not_decided_again,
    a_topic_is_watched_once,
    a_write_of_others_is_taken_for_an_echo,
    a_resignation_is_not_fenced,
    no_store_at_the_start_is_fatal,
)
