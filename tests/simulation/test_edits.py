"""Edits of a function take effect wherever it was imported, end with the test, and never fit by chance."""

from __future__ import annotations

import pytest

from controller.model import reassignment
from controller.model.reassignment import is_caught_up
from tests.simulation.planted.edits import StaleEdit, edit
from transport.metadata import ReplicaAssignment

CAUGHT_UP = "controller.model.reassignment:is_caught_up"
MOVING = ReplicaAssignment((4, 1, 2), (4,), (2,))


def test_an_edit_is_seen_by_those_who_imported_the_function() -> None:
    assert not is_caught_up(MOVING, (2, 4))
    with pytest.MonkeyPatch.context() as patch:
        edit(patch, CAUGHT_UP, ("moving.target_replicas", "moving.adding_replicas"))
        assert is_caught_up(MOVING, (2, 4))
        assert reassignment.is_caught_up is is_caught_up
    assert not is_caught_up(MOVING, (2, 4))


def test_an_edit_keeps_the_lines_of_the_module() -> None:
    before = is_caught_up.__code__.co_firstlineno
    with pytest.MonkeyPatch.context() as patch:
        edit(patch, CAUGHT_UP, ("moving.target_replicas", "moving.adding_replicas"))
        assert is_caught_up.__code__.co_firstlineno == before


@pytest.mark.parametrize("text", ["no such text", "isr"])
def test_text_that_is_missing_or_occurs_twice_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with pytest.raises(StaleEdit):
        edit(monkeypatch, CAUGHT_UP, (text, ""))


def test_a_function_that_is_gone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError):
        edit(monkeypatch, "controller.model.reassignment:was_here_once", ("a", "b"))
