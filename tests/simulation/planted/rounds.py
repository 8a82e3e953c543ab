"""Bugs in how the rounds of an event are committed, applied and published."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def a_chunk_is_published_before_its_commit(patch: pytest.MonkeyPatch) -> None:
    """Publish a chunk while the store writes it."""
    answered = "done.answered(members, await self._commit(members, done))"
    edit(
        patch,
        "controller.node.round_runner:RoundRunner._change",
        (answered, f"self.publish(change.round, [members])\n                {answered}"),
    )


def a_chunk_overlaps_across_a_conflict(patch: pytest.MonkeyPatch) -> None:
    """Commit the next chunk as if all of the last one had been committed, its refused steps as well."""
    edit(
        patch,
        "controller.node.round_runner:_Round.may_overlap",
        ("OVERLAPS and len(result.committed) == len(members) and set", "OVERLAPS and set"),
    )
    commit = "commit = commit_chunk("
    forget = "done.answered(last, ChunkResult(result.zxid, tuple(range(len(last))), ()))"
    edit(
        patch,
        "controller.node.round_runner:RoundRunner._commit",
        (commit, f"for last, result in filter(None, [done._unsettled]):\n            {forget}\n        {commit}"),
    )


def a_bulk_election_ignores_an_offline_directory(patch: pytest.MonkeyPatch) -> None:
    """Decide about a partition with a replica in a failed directory as about those that are alike otherwise."""
    edit(
        patch,
        "controller.model.choosing:singular",
        ("chain(context.failures, context.waiting", "chain(context.waiting"),
    )


BUGS = (
    a_chunk_is_published_before_its_commit,
    a_chunk_overlaps_across_a_conflict,
    a_bulk_election_ignores_an_offline_directory,
)
