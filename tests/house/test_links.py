"""Links and paths in README.md, CHANGELOG.md and docs/ lead to what exists, and docs/ has an index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.house.requirements import DOCUMENT

ROOT: Final = DOCUMENT.parents[1]
INDEX: Final = ROOT / "docs" / "index.md"
PAGES: Final = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]

_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK: Final = re.compile(r"\]\((?P<path>[^)#:\s]*)(?:#(?P<anchor>[^)\s]*))?\)")
_PATH: Final = re.compile(
    r"(?<![\w./-])((?:actors|benchmarks|broker|controller|examples|klamm|simulator|spark_bridge|tests|transport)/[\w./]*\w/?)"
)
_MODULE: Final = re.compile(r"python -m ((?:benchmarks|controller|examples|klamm|tests)[\w.]*)")
_PAGE_OF_DOCS: Final = re.compile(r": (\w+\.md)\b")


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    kept = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in _HEADING.findall(prose(page)))
    return {heading.strip().replace(" ", "-") for heading in kept}


def broken_links(pages: Iterable[Path]) -> Iterator[str]:
    """Yield each link whose file or heading does not exist. A folder is no target: the site has no page for it."""
    for page in pages:
        for match in _LINK.finditer(prose(page)):
            target = page.parent / match["path"] if match["path"] else page
            anchor = match["anchor"]
            if not target.is_file() or (anchor is not None and anchor not in anchors(target)):
                yield f"{page.name}: {match[0][1:]}"


def test_every_link_has_a_target() -> None:
    assert sum(len(_LINK.findall(prose(page))) for page in PAGES) > 50
    assert list(broken_links(PAGES)) == []


@pytest.mark.parametrize(
    ("link", "is_broken"),
    [
        ("other.md", False),
        ("other.md#a-second-heading-3x", False),
        ("#first", False),
        ("https://example.org/nowhere.md", False),
        ("nowhere.md", True),
        ("folder", True),
        ("other.md#first", True),
        ("other.md#a-comment", True),
        ("#nowhere", True),
    ],
)
def test_finds_what_is_broken(link: str, *, is_broken: bool, tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    (tmp_path / "folder").mkdir()
    page.write_text(f"# First\n\nSee [it]({link}).\n\n```\n[code](nowhere.md)\n```\n")
    other.write_text("## A second `heading`: 3x\n\n```\n# A comment\n```\n")
    assert list(broken_links([page])) == ([f"page.md: ({link})"] if is_broken else [])


def missing_paths(text: str) -> list[str]:
    """Return the paths in a text, also in its commands, that do not exist in the repository."""
    return [path for path in _PATH.findall(text) if not (ROOT / path).exists()]


def test_every_path_that_a_page_names_exists() -> None:
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    assert sum(len(_PATH.findall(text)) for text in texts.values()) > 100
    assert [(name, path) for name, text in texts.items() for path in missing_paths(text)] == []


@pytest.mark.parametrize(
    "text", ["its head, `controller/nowhere.py`", "`.venv/bin/python -m pytest controller/nowhere.py -k it`"]
)
def test_finds_a_missing_path_in_prose_and_in_a_command(text: str) -> None:
    assert missing_paths(text) == ["controller/nowhere.py"]


def test_every_module_that_a_page_runs_exists() -> None:
    named = [(page.name, name) for page in PAGES for name in _MODULE.findall(page.read_text(encoding="utf-8"))]
    assert len(named) > 5
    paths = [(page, ROOT / name.replace(".", "/")) for page, name in named]
    assert [(page, path.name) for page, path in paths if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


def test_the_index_and_the_site_have_every_page() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {INDEX.name}
    linked = {match["path"] for match in _LINK.finditer(prose(INDEX))}
    assert sorted(pages - linked) == []
    _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")
    assert sorted(pages - set(_PAGE_OF_DOCS.findall(navigation))) == []
