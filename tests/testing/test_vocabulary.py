"""One vocabulary of actions: a scenario can do everything that a test can, and vice versa."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from klamm.testing import actions
from klamm.testing.actions import Request, Strike
from simulator.scenario.verbs import VERBS

ROOT = Path(__file__).parents[2]
BASES = {Strike, Request}
KEYS = {"Lasting"}
"""Actions that are keys of another one's event: `for` and `then`."""

PUBLIC = {"klamm", "klamm.testing", "klamm.testing.actions", "transport.messages"}


def test_every_action_has_a_verb_and_every_verb_an_action() -> None:
    named = {value for name in actions.__all__ if isinstance(value := getattr(actions, name), type)}
    public = {kind for kind in named if issubclass(kind, Strike | Request)} - BASES
    assert {verb.kind.__name__ for verb in VERBS.values()} == {kind.__name__ for kind in public} - KEYS


def test_the_docs_list_every_verb_with_what_it_does() -> None:
    docs = " ".join((ROOT / "docs" / "testing.md").read_text(encoding="utf-8").split())
    lines = [f"- `{name}` (`{verb.kind.__name__}`): {verb.text}" for name, verb in VERBS.items()]
    assert [line for line in lines if line not in docs or not line.endswith(".")] == []


@pytest.mark.parametrize("name", ["test_actions.py", "test_expectations.py"])
def test_these_tests_need_public_names_only(name: str) -> None:
    tree = ast.parse(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module is not None}
    private = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")]
    ours = {name for name in used if name.split(".")[0] not in {"__future__", "trio"}}
    assert (ours - PUBLIC, private) == (set(), [])
