"""The requirements of docs/requirements.md, and which of them no test claims: `python -m tests.house.requirements`."""

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
    """Return the ids that a test's `requirement` markers name; a marker that names none counts as naming "nothing"."""
    return [str(argument) for marker in item.iter_markers(MARKER) for argument in marker.args or ("nothing",)]


def problem(claimed: Iterable[str], rows: Collection[str]) -> str | None:
    """Say what is wrong with the ids that a test claims, if anything."""
    unknown = [requirement for requirement in claimed if requirement not in rows]
    return f"no requirement {', '.join(unknown)} in docs/requirements.md" if unknown else None


def table(rows: Mapping[str, str], claimed: Collection[str]) -> str:
    """Return the rows that nobody claims as lines `id  requirement`, and a line that counts them."""
    open_rows = {requirement: text for requirement, text in rows.items() if requirement not in claimed}
    lines = [f"{requirement:<3}  {_shortened(text)}" for requirement, text in open_rows.items()]
    return "\n".join([*lines, f"{len(open_rows)} of {len(rows)} requirements are claimed by no test"])


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1].rstrip() + "…"


@define
class _Claimed:
    """Keeps what the collected tests claim; a pytest plugin."""

    ids: set[str] = field(factory=set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self.ids.update(claims(item))


def main() -> int:
    """Collect the tests, print the rows that none claims, and return the exit status."""
    claimed = _Claimed()
    with contextlib.redirect_stdout(io.StringIO()) as output:
        status = pytest.main(["--collect-only", "-qq"], plugins=[claimed])
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        print(output.getvalue())
        return int(status)
    print(table(parse(DOCUMENT.read_text(encoding="utf-8")), claimed.ids))
    return 0


if __name__ == "__main__":
    sys.exit(main())
