"""The moves on the page: totals over all of them, and the rows of some, stalled ones first."""

from __future__ import annotations

from itertools import chain, islice
from typing import Final

import trio
from attrs import frozen

from controller.handlers.reassignment_views import describe_move
from controller.model.context import ControllerContext
from controller.progress.poller import survey_of
from controller.progress.report import Totals, with_progress
from controller.progress.tracker import MoveTracker
from transport.messages import UNKNOWN, ReassignmentDescription
from transport.metadata import TopicPartition

MAX_MOVES: Final = 50


@frozen
class MoveRow:
    """A move as the page shows it. Sizes and times are None while unknown; `done` is a share, from 0 to 1."""

    topic: str
    partition: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    replicas: tuple[int, ...]
    done: float | None
    bytes_left: int | None
    rate: int | None
    eta_ms: int | None
    is_stalled: bool
    waits_for: str


@frozen
class MovesView:
    """All moves."""

    count: int
    totals: Totals
    rows: tuple[MoveRow, ...]


async def view_of_moves(context: ControllerContext, tracker: MoveTracker, now_ms: int) -> MovesView:
    """Return the moves; other tasks run in between."""
    survey = await survey_of(tracker)
    totals, now = survey.totals(), trio.current_time()
    shown = _first(survey.stalled, context)
    described = [with_progress(describe_move(context, tp), tracker, totals, now, now_ms) for tp in shown]
    return MovesView(len(context.reassigning), totals, tuple(map(_row, described)))


def _first(stalled: list[TopicPartition], context: ControllerContext) -> list[TopicPartition]:
    """Return some moves in progress, stalled ones first."""
    wanted = dict.fromkeys(chain(stalled, islice(context.reassigning, MAX_MOVES)))
    return [tp for tp in islice(wanted, MAX_MOVES) if tp in context.reassigning]


def _row(move: ReassignmentDescription) -> MoveRow:
    copied = [item for item in move.progress if not item.in_sync]
    known = [item for item in copied if min(item.log_bytes, item.leader_bytes) >= 0]
    has = sum(min(item.log_bytes, item.leader_bytes) for item in known)
    of = sum(item.leader_bytes for item in known)
    is_known = len(known) == len(copied)
    return MoveRow(
        move.topic,
        move.partition,
        move.adding_replicas,
        move.removing_replicas,
        move.new_replicas,
        done=(has / of if of else 1.0) if is_known else None,
        bytes_left=of - has if is_known else None,
        rate=_known(move.rate),
        eta_ms=_known(move.eta_ms),
        is_stalled=move.stalled_since_ms != UNKNOWN,
        waits_for=move.waits_for,
    )


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number
