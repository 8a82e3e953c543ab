"""A document with a field too many, one too few, or a value of another type is found."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.cli.walk.documents import faults
from tests.cli.walk.recording import Call

ROW: Final[dict[str, Any]] = {
    "topic": "orders",
    "partition": 0,
    "outcome": "complete",
    "replicas": [1, 2],
    "message": "complete",
}


def faults_of(*rows: dict[str, Any], words: str = "reassignment verify") -> list[str]:
    return faults(Call(words, words, json.dumps(rows), "", 0))


def test_a_document_of_the_type_is_well() -> None:
    assert faults_of(ROW, ROW) == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"broker": 1}, "fields ['broker'] are only on one side"),
        ({"partition": "0"}, "Expected `int`, got `str`"),
        ({"outcome": "done"}, "Invalid enum value 'done'"),
    ],
)
def test_a_field_too_many_or_of_another_type_is_a_fault(changed: dict[str, Any], fault: str) -> None:
    [found] = faults_of(ROW, ROW | changed)
    assert fault in found


def test_a_field_too_few_is_a_fault_even_if_it_has_a_default() -> None:
    [found] = faults_of({name: value for name, value in ROW.items() if name != "message"})
    assert "missing required field `message`" in found
    release: dict[str, Any] = {"kafka_controller": 3, "released": None, "topics_that_name_it": []}
    [found] = faults(Call("controller release", "", json.dumps(release), "", 0))
    assert "fields ['is_dry_run'] are only on one side" in found


def test_a_document_of_several_types_has_to_be_of_one() -> None:
    assert faults_of(ROW, words="reassignment execute") == []
    assert len(faults_of(ROW | {"more": 1}, words="reassignment execute")) == 2


@pytest.mark.parametrize(("code", "is_well"), [(1, True), (0, False)])
def test_only_an_error_line_stands_for_a_document(code: int, is_well: bool) -> None:
    assert (faults(Call("topic list", "topic list", "", "Error: no answer\n", code)) == []) is is_well
