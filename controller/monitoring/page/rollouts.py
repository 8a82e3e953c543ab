"""The rollouts on the page: those that run or wait, and the last ones that are over."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from controller.handlers.rollout_views import describe
from controller.model.context import ControllerContext
from controller.rollout.states import MoveState, Phase
from transport.messages import UNKNOWN, UNTHROTTLED, RolloutDescription

MAX_ROLLOUTS: Final = 20
MAX_WAITS: Final = 5

_UNUSABLE: Final = "unusable"
_BACK: Final = frozenset({Phase.ABORTING_TO_UNDO.value, Phase.UNDOING.value, Phase.UNDONE.value})
_TO_TAKE_BACK: Final = (MoveState.DONE, MoveState.GOING_BACK, MoveState.BACK)
_LEFT: Final = (MoveState.PENDING, MoveState.IN_FLIGHT)


@frozen
class RolloutRow:
    """A rollout as the page shows it: `ended` of `of` moves have ended in the direction in which it goes.

    Bytes, rate, time and error are None while unknown, rate and time also at the end, `throttle` while there is none.
    `waits` has what most moves wait for.
    """

    name: str
    phase: str
    is_over: bool
    is_held: bool
    why: str
    ended: int
    of: int
    in_flight: int
    problems: dict[str, int]
    bytes_left: int | None
    rate: int | None
    left_ms: int | None
    error_percent: int | None
    throttle: int | None
    started_ms: int
    started_by: str
    waits: tuple[tuple[str, int], ...]


def rows_of_rollouts(context: ControllerContext) -> tuple[RolloutRow, ...]:
    """Return the rollouts, those that are over last."""
    return tuple(map(_row, describe(context, None).rollouts[:MAX_ROLLOUTS]))


def _row(rollout: RolloutDescription) -> RolloutRow:
    counts = {MoveState(state): count for state, count in rollout.counts}
    ended, of = _ended(rollout, counts)
    is_over = rollout.place == UNKNOWN
    return RolloutRow(
        rollout.name,
        _UNUSABLE if rollout.fault else rollout.phase if rollout.place <= 0 else "queued",
        is_over,
        is_held=bool(rollout.fault) or (not is_over and bool(rollout.holds)),
        why=rollout.why,
        ended=ended,
        of=of,
        in_flight=counts.get(MoveState.IN_FLIGHT, 0) + counts.get(MoveState.GOING_BACK, 0),
        problems={
            state.value: counts[state]
            for state in (MoveState.FAILED, MoveState.DELETED, MoveState.OVERRIDDEN, MoveState.SKIPPED)
            if state in counts
        },
        bytes_left=rollout.bytes_left if rollout.bytes else None,
        rate=None if is_over else _known(rollout.rate),
        left_ms=None if is_over else _known(rollout.left_ms),
        error_percent=_known(rollout.error_percent),
        throttle=None if rollout.settings.throttle == UNTHROTTLED else rollout.settings.throttle,
        started_ms=rollout.started_ms,
        started_by=rollout.started_by,
        waits=rollout.waits[:MAX_WAITS],
    )


def _ended(rollout: RolloutDescription, counts: dict[MoveState, int]) -> tuple[int, int]:
    if rollout.phase in _BACK:
        return counts.get(MoveState.BACK, 0), sum(counts.get(state, 0) for state in _TO_TAKE_BACK)
    return rollout.moves - sum(counts.get(state, 0) for state in _LEFT), rollout.moves


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number
