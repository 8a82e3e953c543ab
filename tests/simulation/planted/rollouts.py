"""Bugs in the rollouts that a controller carries out."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def a_limit_of_a_rollout_is_forgotten_by_the_next_controller(patch: pytest.MonkeyPatch) -> None:
    """Let the moves that a former controller has begun count for no limit."""
    ours = "ours = _in_flight(context, rollout)"
    edit(
        patch,
        "controller.handlers.rollout_moves:_choose",
        (ours, f"{ours} if context.epoch == 1 else []"),
    )


def a_move_of_a_rollout_may_begin_twice(patch: pytest.MonkeyPatch) -> None:
    """Begin moves that are not marked, so that the next controller begins them again."""
    edit(
        patch,
        "controller.handlers.rollout_moves:_begin",
        ("yield from write_marks(rollout, (yield from confirmed(context, rollout, changes)))", "yield from ()"),
        ("for part, number in begun if part.state(number) is part.direction.in_flight]", "for part, number in begun]"),
    )


def a_throttle_of_a_rollout_is_left(patch: pytest.MonkeyPatch) -> None:
    """Lift no throttle that a former controller has set."""
    edit(
        patch,
        "controller.handlers.rollouts:_lift",
        ("if rollout.stored.throttled:", "if rollout.stored.throttled and context.epoch == 1:"),
    )


def a_brake_never_lets_go(patch: pytest.MonkeyPatch) -> None:
    """Keep the partitions that have ever been under min ISR."""
    edit(
        patch,
        "controller.handlers.rollout_brakes:_under_min_isr",
        ("start: tuple(lacking)}", "start: tuple(lacking) or rollout.under.get(start, ())}"),
    )


def an_undo_forgets_the_order(patch: pytest.MonkeyPatch) -> None:
    """Take moves back to the replicas of before, but in the order of their ids."""
    edit(
        patch,
        "controller.rollout.moves:Move.reversed.fget",
        ("self.after, self.before", "self.after, tuple(sorted(self.before))"),
    )


def an_override_by_hand_is_overwritten(patch: pytest.MonkeyPatch) -> None:
    """Take a partition that an administrator moves out of the rollout only while the rollout moves it, too."""
    states = "{part.direction.pending, part.direction.in_flight, MoveState.DONE}"
    edit(patch, "controller.model.rollouts:Rollouts.open_moves", (states, "{part.direction.in_flight}"))


def a_signal_never_lets_go(patch: pytest.MonkeyPatch) -> None:
    """Keep the first no of an operator's signal."""
    edit(
        patch,
        "controller.model.rollouts:Rollouts._of_known",
        ("rollout.signal = fact.text", "rollout.signal = rollout.signal or fact.text"),
    )


def a_signal_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Begin moves before the operator's signal has been asked."""
    edit(
        patch,
        "controller.handlers.rollout_brakes:brake_of",
        ('"its signal has not been asked for yet" if rollout.signal is None else rollout.signal', "rollout.signal"),
    )


def nobody_waits_for_room(patch: pytest.MonkeyPatch) -> None:
    """Begin moves to brokers before they have answered how much room they have."""
    edit(
        patch,
        "controller.handlers.rollout_moves:_standing",
        ("awaited = rollout.unheard(receiving)", "awaited: frozenset[int] = frozenset()"),
    )


def a_rate_of_a_rollout_is_left(patch: pytest.MonkeyPatch) -> None:
    """Restore the rates of brokers only if the rollout was begun by the same controller."""
    edit(
        patch,
        "controller.handlers.rollouts:_end",
        ("is_throttled = not (", "is_throttled = context.epoch == 1 and not ("),
    )


def a_row_of_a_rollout_is_not_judged(patch: pytest.MonkeyPatch) -> None:
    """Carry rollouts out whatever their states and marks say, as long as they can be decoded."""
    edit(patch, "transport.store.rollouts:_decode_settings", ("msgspec.convert(item, _SETTINGS[name])", "pass"))
    edit(patch, "controller.model.rollout_rows:read_state", ("fault = state_fault(stored)", "fault = None"))
    edit(patch, "controller.model.rollout_rows:read_marks", ("!= part.moves", "< 0"), (">= len(CODES)", "> 255"))


def moves_of_a_deleted_topic_wait_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Mark no move of a topic that was deleted, so that its rollout never ends."""
    edit(
        patch,
        "controller.handlers.rollout_records:confirmed",
        ("if not there:", "if not deleted:"),
        ("or moves[number].topic not in there", ""),
    )


def an_order_that_is_not_written_is_answered_with_success(patch: pytest.MonkeyPatch) -> None:
    """Take a state of a rollout for written that the store has rejected."""
    edit(
        patch,
        "controller.handlers.rollout_records:write_state",
        ("return not failed", "return True"),
    )


def a_dead_broker_of_a_move_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Let a move in flight use up no limit, whether its brokers are alive or not."""
    edit(
        patch,
        "controller.rollout.choosing:InFlight.of.__func__",
        ("if broker not in isr and not is_alive(broker)), None)", "if broker not in isr), None)"),
    )


def a_move_begins_at_full_speed(patch: pytest.MonkeyPatch) -> None:
    """Begin a move also where a live broker cannot be throttled."""
    edit(
        patch,
        "controller.handlers.rollout_moves:_throttled",
        ("if is_held(part.moves[number]):", "if is_held(part.moves[number]) and number < 0:"),
    )


def an_invalid_rate_is_recorded_as_the_one_before(patch: pytest.MonkeyPatch) -> None:
    """Record the rate that a broker had before moves without regard to whether it is valid."""
    edit(
        patch,
        "controller.admin.throttle_settings:slowed",
        ("_valid(own, side.rate) or NONE_BEFORE", "own.get(side.rate, NONE_BEFORE)"),
    )


BUGS = (
    a_limit_of_a_rollout_is_forgotten_by_the_next_controller,
    a_move_of_a_rollout_may_begin_twice,
    a_throttle_of_a_rollout_is_left,
    a_brake_never_lets_go,
    an_undo_forgets_the_order,
    an_override_by_hand_is_overwritten,
    a_signal_never_lets_go,
    a_signal_is_not_waited_for,
    nobody_waits_for_room,
    a_rate_of_a_rollout_is_left,
    a_row_of_a_rollout_is_not_judged,
    moves_of_a_deleted_topic_wait_for_ever,
    an_order_that_is_not_written_is_answered_with_success,
    a_dead_broker_of_a_move_is_not_waited_for,
    a_move_begins_at_full_speed,
    an_invalid_rate_is_recorded_as_the_one_before,
)
