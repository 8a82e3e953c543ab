"""The states of a rollout: what operators, brakes and the end of moves do to it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from controller.rollout.states import MOVES, PHASES, Happening, HeldBy, MoveState, Phase, RolloutState

H, P = Happening, Phase


@pytest.mark.parametrize(
    ("happenings", "expected"),
    [
        ([H.FINISHED], "done"),
        ([H.PAUSE], "paused by operator"),
        ([H.PAUSE, H.BRAKE, H.RESUME], "paused by brake"),
        ([H.PAUSE, H.BRAKE, H.RELEASE], "paused by operator"),
        ([H.BRAKE, H.RELEASE], "running"),
        ([H.FOREIGN_CONTROLLER, H.RELEASE], "paused by foreign controller"),
        ([H.FOREIGN_CONTROLLER, H.RESUME], "running"),
        ([H.PAUSE, H.ABORT], "aborting"),
        ([H.ABORT, H.LANDED], "aborted"),
        ([H.ABORT, H.LANDED, H.RESUME], "aborted"),
        ([H.UNDO], "aborting to undo"),
        ([H.UNDO, H.LANDED, H.PAUSE], "undoing, paused by operator"),
        ([H.UNDO, H.LANDED, H.FINISHED], "undone"),
        ([H.FINISHED, H.ABORT], "done"),
        ([H.FINISHED, H.UNDO, H.LANDED, H.FINISHED], "undone"),
        ([H.UNDO, H.LANDED, H.ABORT], "undoing"),
    ],
)
def test_what_happens_to_a_rollout(happenings: list[Happening], expected: str) -> None:
    state = RolloutState()
    for happening in happenings:
        state = state.after(happening)
    assert str(state) == expected


def test_a_refused_abort_lets_no_hold_go() -> None:
    held = RolloutState(P.UNDOING, frozenset({HeldBy.OPERATOR}))
    assert held.after(H.ABORT) == held


def test_every_phase_and_state_has_its_row() -> None:
    assert set(PHASES) == set(Phase)
    assert set(MOVES) == set(MoveState)


@given(st.lists(st.sampled_from(Happening)))
def test_whatever_happened_an_operator_gets_it_to_its_end(happenings: list[Happening]) -> None:
    state = RolloutState()
    for happening in [*happenings, H.RESUME, H.RELEASE, H.LANDED, H.FINISHED]:
        state = state.after(happening)
    assert state.is_over
    assert not state.is_paused
