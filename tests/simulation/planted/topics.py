"""Bugs in topics, their deletion and their settings."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def assignments_that_a_tool_rewrote_are_adopted(patch: pytest.MonkeyPatch) -> None:
    """Let a topic's znode that others have rewritten outrank the known assignments."""
    edit(
        patch,
        "controller.handlers.topics:_take_over",
        ("{**added, **known.partitions}", "{**known.partitions, **added}"),
    )


def a_dry_run_creates_topics(patch: pytest.MonkeyPatch) -> None:
    """Answer a request that only validates, after it has been carried out."""
    edit(
        patch,
        "controller.handlers.topic_requests:create_topics",
        ("if not request.validate_only:", "if creations or not request.validate_only:"),
    )


def a_failed_deletion_is_not_retried(patch: pytest.MonkeyPatch) -> None:
    """Retry strays that a broker could not delete, and forget the topics."""
    edit(
        patch,
        "controller.node.alarms:_later",
        ("for again in (*records, *topics)]", "for again in records]"),
    )


def marked_topics_are_deleted_where_none_can_be(patch: pytest.MonkeyPatch) -> None:
    """Delete the topics that are marked, whatever delete.topic.enable is."""
    edit(
        patch,
        "controller.handlers.deletion_markers:read_marked",
        ("if not context.config.delete_topic_enable:", "if context is None:"),
    )


def an_alteration_drops_the_other_settings(patch: pytest.MonkeyPatch) -> None:
    """Write the settings that a request names, and no others."""
    edit(
        patch,
        "controller.handlers.config_changes:_step",
        ("before = {} if znode is None else formats.decode_config(path, znode.data)", "before = {}"),
    )


def nobody_is_notified_of_settings(patch: pytest.MonkeyPatch) -> None:
    """Alter settings without the notification that has others read them."""
    edit(
        patch,
        "controller.handlers.config_changes:_step",
        ("write_over(znode, path, data), told)", "write_over(znode, path, data))"),
    )


def a_dry_run_alters_settings(patch: pytest.MonkeyPatch) -> None:
    """Make the change of a request that only validates."""
    edit(patch, "controller.handlers.config_changes:alter_configs", ("if validate_only:", "if validate_only is None:"))


BUGS = (
    assignments_that_a_tool_rewrote_are_adopted,
    a_dry_run_creates_topics,
    a_failed_deletion_is_not_retried,
    marked_topics_are_deleted_where_none_can_be,
    an_alteration_drops_the_other_settings,
    nobody_is_notified_of_settings,
    a_dry_run_alters_settings,
)
