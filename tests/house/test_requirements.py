from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import requirements

DOCUMENT = """\
# Requirements

| id | requirement |
| --- | --- |
| A1 | Replicas move. |
| A2 | The command waits. |
| B1 | Moves can be listed. |
"""
ROWS = {"A1": "Replicas move.", "A2": "The command waits.", "B1": "Moves can be listed."}


def test_parses_rows_in_order() -> None:
    assert list(requirements.parse(DOCUMENT).items()) == list(ROWS.items())


def test_refuses_an_id_with_two_rows() -> None:
    with pytest.raises(ValueError, match="A1 has two rows"):
        requirements.parse(DOCUMENT + "| A1 | Again. |\n")


def test_the_document_has_every_row() -> None:
    rows = requirements.parse(requirements.DOCUMENT.read_text(encoding="utf-8"))
    lengths = {"A": 11, "B": 5, "C": 5, "D": 12, "E": 5}
    assert list(rows) == [f"{part}{number}" for part, length in lengths.items() for number in range(1, length + 1)]


@pytest.mark.parametrize(
    ("claimed", "problem"), [([], None), (["A1", "B1"], None), (["A1", "Z9"], "no requirement Z9")]
)
def test_tells_unknown_ids(claimed: list[str], problem: str | None) -> None:
    found = requirements.problem(claimed, ROWS)
    assert (found or "").startswith(problem or "")
    assert (found is None) == (problem is None)


def test_lists_what_nobody_claims() -> None:
    assert requirements.table(ROWS, {"A2"}) == (
        "A1   Replicas move.\nB1   Moves can be listed.\n2 of 3 requirements are claimed by no test"
    )


def test_a_finished_row_is_shown_in_processes_and_in_the_small() -> None:
    assert requirements.shown_once({"A1", "A2"}, {"A1", "A2"}, {"A2", "A1", "B1"}) == []
    assert requirements.shown_once({"A1", "A2"}, {"A1"}, {"A2"}) == [
        "A2 is claimed by no test in tests/cluster/",
        "A1 is claimed by no test outside of tests/cluster/",
    ]


def test_shortens_long_rows() -> None:
    line = requirements.table({"A1": "word " * 100}, ()).splitlines()[0]
    assert len(line) <= 120
    assert line.endswith("…")


def test_a_folder_claims_a_row_for_its_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    assert requirements.claims(request.node) == []
    monkeypatch.setitem(requirements.FOLDERS, "tests/house/", "A1")
    assert requirements.claims(request.node) == ["A1"]


@pytest.mark.parametrize("marker", ['pytest.mark.requirement("Z9")', "pytest.mark.requirement"])
def test_a_wrong_claim_stops_the_collection(marker: str, tmp_path: Path) -> None:
    test = tmp_path / "test_claim.py"
    test.write_text(f"import pytest\n@{marker}\ndef test_nothing(): pass\n")
    root = requirements.DOCUMENT.parents[1]
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "no:cacheprovider", str(test)]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "::test_nothing: no requirement" in result.stderr
