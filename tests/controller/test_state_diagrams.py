"""The diagrams in docs are those of the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.state_diagrams import DEFAULT_FILE, main, page

PAGE = Path(__file__).parents[2] / DEFAULT_FILE


@pytest.mark.requirement("D3")
def test_the_page_in_docs_is_what_the_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m docs.state_diagrams"


def test_the_page_is_written_where_one_says(tmp_path: Path) -> None:
    main([str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "    [*] --> NewPartition\n" in text
    assert "| ReplicaDeletionSuccessful | ReplicaDeletionStarted |" in text
