"""Mutants: the product with one small change of a function's syntax tree, drawn from a seed."""

from __future__ import annotations

import ast
import inspect
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from itertools import islice, zip_longest
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType, FunctionType
from typing import Final

from attrs import frozen

from tests.simulation.mutation.operators import Change, changes, is_logging
from tests.simulation.planted.edits import code_of

ROOT: Final = Path(__file__).resolve().parents[3]

_GENERATOR_OR_COROUTINE: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@frozen
class Mutant:
    """A change of a function: the `variant`-th of the `node`-th node below it, in the order of `_below`."""

    path: str
    function: str
    line: int
    kind: str
    text: str
    node: int
    variant: int
    nth: int
    """The position among the changes of this kind to this text in its function, counted from 1."""

    @property
    def name(self) -> str:
        """The name, unlike all others, which remains when other lines change."""
        count = f" #{self.nth}" if self.nth > 1 else ""
        return f"{self.path} {self.function} {self.kind}: {self.text}{count}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {self.text}"


@cache
def mutants_of(path: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its source."""
    found = []
    for name, function in _functions(ast.parse((ROOT / path).read_text())):
        alike: Counter[tuple[str, str]] = Counter()
        for number, node in enumerate(_below(function)):
            for variant, change in enumerate(changes(node)):
                line = getattr(change.shown, "lineno", function.lineno)
                text = ast.unparse(change.shown).splitlines()[0]
                alike[change.kind, text] += 1
                nth = alike[change.kind, text]
                found.append(Mutant(path, name, line, change.kind, text, number, variant, nth))
    return found


def drawn(paths: Sequence[str], number: int, seed: int) -> list[Mutant]:
    """Draw mutants of modules: a kind first, then one of that kind, so that frequent kinds do not crowd out others.

    Within a kind they come in the order of a hash of their names: an edit of one function leaves the others' place.
    """
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in (mutant for path in paths for mutant in mutants_of(path)):
        by_kind.setdefault(mutant.kind, []).append(mutant)
    ranked = {kind: sorted(of_kind, key=partial(_rank, seed=seed)) for kind, of_kind in by_kind.items()}
    queues = {kind: filter(_is_viable, of_kind) for kind, of_kind in ranked.items()}
    rng = random.Random(seed)
    found: list[Mutant] = []
    while len(found) < number:
        found += islice(queues[rng.choice(sorted(queues))], 1)
    return found


def _rank(mutant: Mutant, *, seed: int) -> bytes:
    return sha256(f"{seed} {mutant.name}".encode()).digest()


def apply(mutant: Mutant) -> None:
    """Put a mutant in the place of its function, for the rest of this process."""
    function = _function(mutant)
    function.__code__ = mutated_code(mutant)


def _function(mutant: Mutant) -> FunctionType:
    module = mutant.path.removesuffix(".py").replace("/", ".")
    found = resolve_name(f"{module}:{mutant.function}")
    found = found.fget if isinstance(found, property) else inspect.unwrap(getattr(found, "__func__", found))
    assert isinstance(found, FunctionType), f"{mutant.function} is no function"
    return found


def _is_viable(mutant: Mutant) -> bool:
    """Return whether a mutant still is a function of the same kind, with the same variables from outside."""
    before = _function(mutant).__code__
    try:
        after = mutated_code(mutant)
    except SyntaxError:
        return False
    is_same_kind = (before.co_flags ^ after.co_flags) & _GENERATOR_OR_COROUTINE == 0
    return is_same_kind and before.co_freevars == after.co_freevars and before != after


def mutated_code(mutant: Mutant) -> CodeType:
    """Return the code of a mutant."""
    tree, function = _parsed(mutant)
    _change(mutant, function).make()
    ast.fix_missing_locations(tree)
    return code_of(compile(tree, str(ROOT / mutant.path), "exec", dont_inherit=True), mutant.function)


def changed_text(mutant: Mutant) -> str:
    """Return the first line of a mutant that is not as before."""
    _, function = _parsed(mutant)
    before = ast.unparse(function).splitlines()
    _change(mutant, function).make()
    after = ast.unparse(ast.fix_missing_locations(function)).splitlines()
    return next((new.strip() for old, new in zip_longest(before, after) if old != new and new), "")


def _parsed(mutant: Mutant) -> tuple[ast.Module, ast.AST]:
    tree = ast.parse((ROOT / mutant.path).read_text())
    return tree, dict(_functions(tree))[mutant.function]


def _change(mutant: Mutant, function: ast.AST) -> Change:
    return list(changes(_below(function)[mutant.node]))[mutant.variant]


def _functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions and methods of a module, without those inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{within}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{within}{node.name}", node


def _below(node: ast.AST) -> list[ast.AST]:
    """Return a function and the nodes of its body, without those that are left alone."""
    found = [node]
    for child in ast.iter_child_nodes(node):
        if not _is_left_alone(node, child):
            found += _below(child)
    return found


def _is_left_alone(parent: ast.AST, child: ast.AST) -> bool:
    if isinstance(child, (ast.arguments, ast.JoinedStr, ast.Assert, ast.expr_context)):
        return True
    if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in (
        parent.returns,
        *parent.decorator_list,
    ):
        return True
    if isinstance(parent, ast.AnnAssign) and child is parent.annotation:
        return True
    return is_logging(child)
