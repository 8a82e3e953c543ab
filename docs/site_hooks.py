"""The hooks of `mkdocs.yml`: pages at the root of the repository become pages, and other linked files are copied.

MkDocs takes pages from docs/ alone. README.md and CHANGELOG.md are pages of the site too. A link that leaves docs/, to
an example for instance, leads to a copy of the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
ROOT_PAGES: Final = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""The names on the site of the pages at the root of the repository."""

_LINK: Final = re.compile(r"(?<=\]\()(?P<path>[^)#:\s]+)(?=[)#])")
"""The path in a relative link."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the root, and a copy of each other file outside docs/ that a page links to."""
    sources = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    targets = {target for source in [*sources, *ROOT_PAGES] for target in _targets(source)}
    for name, site_name in ROOT_PAGES.items():
        files.append(File.generated(config, site_name, content=(ROOT / name).read_text(encoding="utf-8")))
    for target in sorted(targets - ROOT_PAGES.keys()):
        # A target that does not exist is left to MkDocs, which names the page that links to it.
        if not target.startswith("docs/") and (ROOT / target).is_file():
            files.append(File.generated(config, _on_site(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  by name
    """Rewrite the links of a page to the places of their targets on the site."""
    folder = "" if page.file.src_uri in ROOT_PAGES.values() else "docs"
    return _LINK.sub(lambda match: _on_site(_in_repository(folder, match["path"])), markdown)


def _targets(source: str) -> Iterator[str]:
    text = (ROOT / source).read_text(encoding="utf-8")
    for match in _LINK.finditer(text):
        yield _in_repository(posixpath.dirname(source), match["path"])


def _in_repository(folder: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(folder, link))


def _on_site(path: str) -> str:
    """Return the place of a repository's file on the site. Its pages are all in one folder."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"
