"""Each write of a controller is committed by `commit` or `commit_each`, and a rejected one has a consequence.

An ACL can close any znode to writes. Such a write is rejected for good, and whoever commits must say what follows: an
error in the answer, a retry by a later event, or an error in the log that names the consequence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from tests.house.requirements import DOCUMENT

ROOT: Final = DOCUMENT.parents[1]
CONTROLLER: Final = ROOT / "controller"
ROUNDS: Final = "controller.model.rounds"
PRIVATE: Final = frozenset({"Change", "ChangeOutcome"})
DRIVERS: Final = frozenset({"controller/model/rounds.py", "controller/node/round_runner.py"})
"""The effects that change the context are made in the first, and performed in the second."""

COMMITS: Final = frozenset({"commit", "commit_each"})
CHANGING: Final = COMMITS | {"apply"}
FEWEST_WORDS: Final = 5
LOGGED: Final = "logged"


def faults(source: str) -> Iterator[str]:
    """Yield what a module does against the rules of this page."""
    tree = ast.parse(source)
    names = set(_imported(tree))
    yield from _other_names(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = [call.func for call in calls]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names & CHANGING and node not in called:
            yield f"line {node.lineno}: {node.id} is called, not passed on"
    for function in _outermost(tree):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            if name == "apply" and name in names:
                yield from _written(tree, call)
            elif name in COMMITS:
                yield from _ignored(tree, function, call)


def _imported(tree: ast.Module) -> list[str]:
    """Return the names that a module imports from the module of rounds."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == ROUNDS]
    return [alias.name for node in froms for alias in node.names]


def _other_names(tree: ast.Module) -> Iterator[str]:
    """Yield the ways round the functions: the effects themselves, other names of the functions, the module."""
    for name in PRIVATE.intersection(_imported(tree)):
        yield f"{name} is for `apply` and `commit` alone"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == ROUNDS:
            yield from (f"{alias.name} has no other name" for alias in node.names if alias.asname or alias.name == "*")
        elif isinstance(node, ast.ImportFrom) and node.module == ROUNDS.rpartition(".")[0]:
            yield from ("import names, not the module" for alias in node.names if alias.name == "rounds")
        elif isinstance(node, ast.Import):
            yield from ("import names, not the module" for alias in node.names if alias.name == ROUNDS)


def _outermost(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module and of its classes; others are part of these."""
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from (each for each in inner if isinstance(each, ast.FunctionDef))


def _written(tree: ast.Module, call: ast.Call) -> Iterator[str]:
    """Yield a fault if steps that are applied have writes, here or where a function of the module makes them."""
    named = {node.id for each in call.args for node in ast.walk(each) if isinstance(node, ast.Name)}
    makers = [function for function in _outermost(tree) if function.name in named]
    for step in (node for source in [*call.args, *makers] for node in ast.walk(source) if isinstance(node, ast.Call)):
        has_writes = len(step.args) > 1 or any(keyword.arg in {"writes", None} for keyword in step.keywords)
        if isinstance(step.func, ast.Name) and step.func.id == "Step" and has_writes:
            yield f"line {call.lineno}: steps with writes are applied without a commit"


def _ignored(tree: ast.Module, scope: ast.FunctionDef, call: ast.Call) -> Iterator[str]:
    """Yield a fault if nothing follows from what is rejected."""
    handlers = [keyword.value for keyword in call.keywords if keyword.arg == "on_rejected"]
    fault = _fault(tree, scope, handlers[0]) if handlers else "say on_rejected=, by its name"
    if fault is not None:
        yield f"line {call.lineno}: {fault}"


def _fault(tree: ast.Module, scope: ast.FunctionDef, handler: ast.expr) -> str | None:
    """Return what is wrong with what a function does about rejected writes."""
    match handler:
        case ast.Name(id=name) if (call := _assigned(scope, name)) is not None:
            return _fault(tree, scope, call)
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant() | ast.JoinedStr() as consequence]) if name == LOGGED:
            return None if len(_literal(consequence).split()) >= FEWEST_WORDS else "name the consequence in a sentence"
        # The method of a collection, which must be looked at afterwards.
        case ast.Attribute(value=ast.Name(id=collection)):
            names = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == collection]
            reads = [node for node in names if isinstance(node.ctx, ast.Load) and node is not handler.value]
            return None if reads else f"{collection} collects what is rejected, and is used nowhere"
        case ast.Lambda():
            return None if _uses_its_argument(handler) else "ignores what is rejected"
        case ast.Name(id=name):
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
            uses = any(map(_uses_its_argument, functions))
            return None if uses else f"{name} is no function of this module that uses what is rejected"
    return f"{ast.unparse(handler)} is none of the ways to answer a rejection"


def _assigned(scope: ast.FunctionDef, name: str) -> ast.Call | None:
    """Return the call with the result that a function gives a name to, if there is one."""
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call) if target == name:
                return call
    return None


def _literal(text: ast.Constant | ast.JoinedStr) -> str:
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    return " ".join([str(part.value) for part in parts if isinstance(part, ast.Constant)])


def _uses_its_argument(function: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a function does something with its argument, or raises an error."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    names = {arg.arg for arg in function.args.args}
    nodes = [node for statement in body for node in ast.walk(statement)]
    return any(isinstance(node, ast.Raise) or (isinstance(node, ast.Name) and node.id in names) for node in nodes)


def test_every_rejected_write_of_a_controller_has_a_consequence() -> None:
    paths = sorted(path for path in CONTROLLER.rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix(): list(faults(path.read_text(encoding="utf-8"))) for path in paths}
    assert {path: each for path, each in found.items() if each and path not in DRIVERS} == {}


@pytest.mark.parametrize("folder", ["broker", "klamm", "simulator", "transport"])
def test_nothing_else_makes_changes(folder: str) -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob("*.py"))}
    imported = {path: _imported(ast.parse(source)) for path, source in sources.items() if ROUNDS in source}
    assert [path for path, names in imported.items() if (PRIVATE | COMMITS).intersection(names)] == []


IMPORTS: Final = f"from {ROUNDS} import Step, apply, commit, commit_each, logged\n"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("yield from commit('a', s, on_rejected=logged('its znode stays until the next event'))", None),
        ("yield from commit('a', s, on_rejected=logged('it stays'))", "in a sentence"),
        ("yield from commit('a', s, on_rejected=logged(f'{path} stays until the next event'))", None),
        ("stays = logged('its znode stays until the next event'); yield from commit('a', s, on_rejected=stays)", None),
        ("stays = logged('it stays'); yield from commit('a', s, on_rejected=stays)", "in a sentence"),
        ("yield from commit('a', s)", "say on_rejected="),
        ("yield from commit('a', s, on_rejected=lambda _: None)", "ignores"),
        ("yield from commit('a', s, on_rejected=lambda some: done.update(some))", None),
        ("yield from commit('a', s, on_rejected=print)", "no function of this module"),
        ("yield from commit('a', s, on_rejected=[].extend)", "none of the ways"),
        ("left = []; yield from commit('a', s, on_rejected=left.extend)", "used nowhere"),
        ("left = []; yield from commit('a', s, on_rejected=left.extend); return left", None),
        ("yield from apply('a', [Step(writes=w)])", "without a commit"),
        ("yield from apply('a', [Step(tps, w)])", "without a commit"),
        ("yield from apply('a', [Step(**w)])", "without a commit"),
        ("yield from apply('a', [made()])", "without a commit"),
        ("yield from apply('a', [Step(facts=f)])", None),
        ("return partial(commit, 'a')", "not passed on"),
        ("def drop(some): ...\n    yield from commit('a', s, on_rejected=drop)", "no function"),
        ("def fail(some): raise ValueError\n    yield from commit('a', s, on_rejected=fail)", None),
    ],
)
def test_sees_what_is_ignored(body: str, fault: str | None) -> None:
    source = f"{IMPORTS}def made():\n    return Step(writes=w)\ndef handle():\n    {body}\n"
    found = list(faults(source))
    assert (not found) if fault is None else [each for each in found if fault in each] == found != []


@pytest.mark.parametrize(
    "source",
    [
        f"from {ROUNDS} import Change",
        f"from {ROUNDS} import ChangeOutcome",
        f"from {ROUNDS} import commit as write",
        f"from {ROUNDS} import *",
        f"import {ROUNDS}",
        "from controller.model import rounds",
    ],
)
def test_sees_ways_round_the_functions(source: str) -> None:
    assert len(list(faults(source))) == 1
