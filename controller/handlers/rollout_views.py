"""Rollouts as administrators see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from controller.handlers import rollout_brakes, rollout_quarantine
from controller.model import rollout_rows
from controller.model.context import ControllerContext
from controller.model.rollout import Rollout
from controller.model.rollout_parts import Part
from controller.model.rounds import Rounds, read
from controller.rollout.choosing import Hold
from controller.rollout.states import MoveState
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    UNKNOWN,
    DescribeRolloutMovesResponse,
    DescribeRolloutsResponse,
    RolloutDescription,
    RolloutMoveState,
)
from transport.store import paths
from transport.store.fields import UndecodableZnode
from transport.store.rollouts import StoredMarks, StoredPart

_MOST_WAITS: Final = 20


def describe(context: ControllerContext, names: Collection[str] | None) -> DescribeRolloutsResponse:
    """Describe all rollouts, or those of these names.

    First come those that run or wait, then those that are quarantined, then those that are over, latest first.
    """

    def is_asked_for(name: str) -> bool:
        return names is None or name in names

    unusable = [rollout_quarantine.described(*each) for each in context.rollouts.unusable.items()]
    over = [one for one in context.rollouts.by_name.values() if one.state.is_over]
    latest_first = sorted(over, key=lambda one: -one.stored.number)
    return DescribeRolloutsResponse(
        (
            *(described(context, one) for one in context.rollouts.queue if is_asked_for(one.name)),
            *(each for each in unusable if is_asked_for(each.name)),
            *(described(context, one) for one in latest_first if is_asked_for(one.name)),
        )
    )


def described(context: ControllerContext, rollout: Rollout) -> RolloutDescription:
    """Describe a rollout."""
    stored, state, left = rollout.stored, rollout.state, rollout.time_left
    place = UNKNOWN if state.is_over else context.rollouts.queue.index(rollout)
    hold = None if state.is_over else rollout_brakes.hold_of(context, rollout)
    braked = hold is not None and not stored.holds
    # What moves waited for before an operator's pause says nothing of the pause.
    waits = Counter() if state.is_over or stored.holds else Counter(map(str, rollout.waits.values()))
    if waits:
        waits.update(rollout.behind)
    return RolloutDescription(
        rollout.name,
        stored.digest,
        stored.phase,
        (*stored.holds, *(["brake"] if braked else [])),
        _why(hold, place),
        place,
        stored.settings,
        stored.started_ms,
        stored.by,
        stored.moves,
        tuple((state.value, count) for state, count in rollout.counts.items()),
        tuple(waits.most_common(_MOST_WAITS)),
        sum(part.bytes for part in stored.parts),
        rollout.left,
        UNKNOWN if left.rate is None else int(left.rate),
        UNKNOWN if left.seconds is None else int(left.seconds * 1000),
        UNKNOWN if left.error is None else round(left.error * 100),
    )


def _why(hold: Hold | None, place: int) -> str:
    if place > 0:
        return f"{place} rollout{'s' if place > 1 else ''} before it"
    return "" if hold is None else hold.text


def describe_moves(
    context: ControllerContext, name: str, states: Sequence[str] | None, part: int
) -> Rounds[DescribeRolloutMovesResponse]:
    """Describe the moves of a part of the plan that are in some states. Raises ApiError."""
    rollout_quarantine.refuse_unusable(context, name)
    rollout = context.rollouts.by_name.get(name)
    if rollout is None:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no rollout {name}: see `klamm rollout list`")
    wanted = set(MoveState) if states is None else {state for state in MoveState if state.value in states}
    if not 0 <= part < len(rollout.stored.parts):
        return DescribeRolloutMovesResponse(())
    stored = rollout.stored.parts[part]
    found = rollout.parts.get(stored.first) or (yield from _read(rollout, stored))
    following = part + 1 if part + 1 < len(rollout.stored.parts) else UNKNOWN
    return DescribeRolloutMovesResponse(tuple(_move(found, number) for number in found.in_states(wanted)), following)


def _read(rollout: Rollout, part: StoredPart) -> Rounds[Part]:
    plan, marked = paths.rollout_plan(rollout.name, part.first), paths.rollout_marks(rollout.name, part.first)
    planned, marks = yield from read([plan, marked])
    try:
        moves = rollout_rows.read_moves(plan, b"" if planned is None else planned.data, part)
        found = StoredMarks(bytes(len(moves))) if marks is None else rollout_rows.read_marks(marked, marks.data, part)
    except UndecodableZnode as fault:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(fault)) from fault
    return Part.of(part, moves, found, -1, rollout.state.phase)


def _move(part: Part, number: int) -> RolloutMoveState:
    move = part.moves[number]
    before, after = (move.before, move.after) if part.is_forth else (move.after, move.before)
    return RolloutMoveState(
        move.topic, move.partition, part.state(number).value, before, after, part.why.get(number, "")
    )
