"""The pages about Kafka's tests and bugs name tests and scenarios that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

import pytest

from tests.house.requirements import DOCUMENT

DOCS: Final = DOCUMENT.parent
TESTS: Final = DOCS.parent / "tests"
SCENARIOS: Final = DOCS.parent / "examples" / "scenarios"
PAGES: Final = ("kafka_tests.md", "kafka_bugs.md")

_TEST: Final = re.compile(r"`(?P<module>test_\w+)::(?P<name>test_\w+)`")
_SCENARIO: Final = re.compile(r"`(?P<name>\w+\.yaml)`")


@cache
def names_of(module: str) -> frozenset[str]:
    """Return the names of the tests in the modules of that name; none if there is no such module."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in TESTS.rglob(f"{module}.py"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, functions))


@pytest.mark.parametrize("page", PAGES)
def test_the_tests_that_a_page_names_exist(page: str) -> None:
    named = list(_TEST.finditer((DOCS / page).read_text(encoding="utf-8")))
    assert len(named) > 30
    assert [match[0] for match in named if match["name"] not in names_of(match["module"])] == []


def test_the_scenarios_that_a_page_names_exist() -> None:
    named = _SCENARIO.findall((DOCS / "kafka_bugs.md").read_text(encoding="utf-8"))
    assert len(named) > 5
    assert [name for name in named if not (SCENARIOS / name).is_file()] == []
