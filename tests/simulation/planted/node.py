"""Bugs in the controller's process: rounds, sessions, watches, offices."""

from __future__ import annotations

import pytest

from controller.node.contact import Contact
from tests.simulation.planted.edits import edit


def the_end_of_a_session_waits_for_its_turn(patch: pytest.MonkeyPatch) -> None:
    """Queue the end of the session behind other events, and let the running one finish."""
    edit(
        patch,
        "controller.node.service:ControllerService._store_changed",
        ("preempt_and_put(events.SessionEnded(), cancel_running=True)", "tell(events.SessionEnded())"),
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


def a_read_out_of_turn_waits_for_notified_topics_only(patch: pytest.MonkeyPatch) -> None:
    """Answer reads while the topics have to be read again, after a connection was lost."""
    topics = '__import__("controller.events").events.TopicChange()'
    edit(
        patch,
        "controller.node.waiting_requests:WaitingRequests._first_answer",
        ("None if self._queue.has_barrier else", f"None if self._queue.has({topics}) else"),
    )


def a_deposed_controller_answers(patch: pytest.MonkeyPatch) -> None:
    """Take the office for held, whatever has happened to the connection and to the process."""
    patch.setattr(Contact, "is_connected", True)
    patch.setattr(Contact, "is_certain", True)


def a_pause_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """Go on after a pause as if there had been none."""
    edit(patch, "controller.node.contact:Contact._look", ("self._doubts += 1", "self._doubts += 0"))


BUGS = (
    the_end_of_a_session_waits_for_its_turn,
    a_lost_answer_counts_as_success,
    conflicts_are_not_decided_again,
    a_topic_is_watched_once,
    a_write_of_others_is_taken_for_an_echo,
    a_resignation_is_not_fenced,
    no_store_at_the_start_is_fatal,
    a_read_out_of_turn_waits_for_notified_topics_only,
    a_deposed_controller_answers,
    a_pause_is_not_noticed,
)
