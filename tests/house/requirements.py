"""The requirements of docs/requirements.md and the tests that claim them: `python -m tests.house.requirements`.

A finished row is shown twice: over a real ZooKeeper with brokers as processes (tests/cluster), and in the small.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest
from attrs import define, field

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "requirements.md"
MARKER: Final = "requirement"
IN_PROCESSES: Final = "tests/cluster/"
FOLDERS: Final = {"tests/spark/": "E3"}
"""Folders all of whose tests claim a row."""
FINISHED: Final = frozenset(
    {
        f"{section}{number}"
        for section, rows in {"A": 11, "B": 5, "C": 5, "D": 12, "E": 1}.items()
        for number in range(1, rows + 1)
    }
)
"""The rows that may not lose a test of either kind any more."""

_ROW: Final = re.compile(r"^\| (?P<id>[A-Z]\d+) \| (?P<text>.+?) \|$", re.MULTILINE)
_WIDTH: Final = 110


def parse(document: str) -> dict[str, str]:
    """Return id and text of each row, in the order of the document. Raises ValueError if an id comes twice."""
    rows: dict[str, str] = {}
    for match in _ROW.finditer(document):
        if match["id"] in rows:
            message = f"requirement {match['id']} has two rows"
            raise ValueError(message)
        rows[match["id"]] = match["text"]
    return rows


def claims(item: pytest.Item) -> list[str]:
    """Return the ids that a test's folder and its `requirement` markers name; one without ids names "nothing"."""
    by_folder = [row for folder, row in FOLDERS.items() if item.nodeid.startswith(folder)]
    return by_folder + [str(id_) for marker in item.iter_markers(MARKER) for id_ in marker.args or ("nothing",)]


def problem(claimed: Iterable[str], rows: Collection[str]) -> str | None:
    """Say what is wrong with the ids that a test claims, if anything."""
    unknown = [requirement for requirement in claimed if requirement not in rows]
    return f"no requirement {', '.join(unknown)} in docs/requirements.md" if unknown else None


def table(rows: Mapping[str, str], claimed: Collection[str]) -> str:
    """Return the rows that nobody claims as lines `id  requirement`, and a line that counts them."""
    open_rows = {requirement: text for requirement, text in rows.items() if requirement not in claimed}
    lines = [f"{requirement:<3}  {_shortened(text)}" for requirement, text in open_rows.items()]
    return "\n".join([*lines, f"{len(open_rows)} of {len(rows)} requirements are claimed by no test"])


def shown_once(finished: Collection[str], in_processes: Collection[str], in_the_small: Collection[str]) -> list[str]:
    """Say which of the finished rows lack a test in processes, or one in the small."""
    kinds = ((in_processes, f"in {IN_PROCESSES}"), (in_the_small, f"outside of {IN_PROCESSES}"))
    return [
        f"{row} is claimed by no test {where}"
        for where_claimed, where in kinds
        for row in sorted(finished)
        if row not in where_claimed
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1].rstrip() + "…"


@define
class _Claimed:
    """Keeps what the collected tests claim; a pytest plugin."""

    in_processes: set[str] = field(factory=set)
    in_the_small: set[str] = field(factory=set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            kind = self.in_processes if item.nodeid.startswith(IN_PROCESSES) else self.in_the_small
            kind.update(claims(item))


def main() -> int:
    """Collect the tests, print the rows that none claims, and return the exit status: 1 if a finished row lacks one."""
    claimed = _Claimed()
    with contextlib.redirect_stdout(io.StringIO()) as output:
        status = pytest.main(["--collect-only", "-qq"], plugins=[claimed])
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        print(output.getvalue())
        return int(status)
    print(table(parse(DOCUMENT.read_text(encoding="utf-8")), claimed.in_processes | claimed.in_the_small))
    lacking = shown_once(FINISHED, claimed.in_processes, claimed.in_the_small)
    for line in lacking:
        print(line, file=sys.stderr)
    return int(bool(lacking))


if __name__ == "__main__":
    sys.exit(main())
