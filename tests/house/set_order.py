"""Find where the iteration order of a set reaches the outside: `python -m tests.house.set_order PATH...`.

The order of a set of strings differs from process to process, so whatever is built from it cannot be replayed. Loops,
lists, tuples, dicts, joined and formatted text, `pop`, `next(iter(...))` and unpacking take that order along and are
findings. `sorted`, `len`, `in`, `min`, `max`, `sum`, `any`, `all` and building another set are none, unless a `key`
leaves ties to the order of the set; nor is `(x,) = S`. `# set-order: <reason>` on its lines or above excuses a finding.
What is seen as a set at all: `tests.house.set_types`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import define, field, frozen

from tests.house.set_types import FUNCTIONS, Annotations, Declarations, Kind, Scope, SetTypes

ORDER_FREE: Final = ("all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum")
KEYED: Final = ("max", "min", "sorted")
PASSED_ON: Final = ("chain", "filter", "iter", "list", "map", "tuple")
"""Calls whose result has the order of their argument, and nothing else of it."""
TAKES_ORDER: Final = (*PASSED_ON, "deque", "enumerate", "print", "repr", "str", "zip")
TAKES_ORDER_AS_METHOD: Final = (*PASSED_ON, "extend", "fromkeys", "join")

_ESCAPE: Final = re.compile(r"#\s*set-order\b:?\s*(?P<reason>.*)")


@frozen
class Finding:
    """One place, lines and columns from 1, and what is wrong there."""

    line: int
    last_line: int
    column: int
    problem: str


@frozen
class Escape:
    """A comment that excuses findings on `covers`, the line it stands on or the one below."""

    line: int
    covers: int
    reason: str


@define
class _Finder(ast.NodeVisitor):
    types: SetTypes
    scope: Scope = field(factory=ChainMap)
    findings: list[Finding] = field(factory=list)
    _order_free: set[ast.AST] = field(factory=set)
    """Nodes whose result goes where order does not matter."""

    def search(self, module: ast.Module) -> list[Finding]:
        self._enter(module)
        return self.findings

    def _enter(self, node: ast.AST) -> None:
        outer, self.scope = self.scope, self.types.inside(node, self.scope)
        self.generic_visit(node)
        self.scope = outer

    def _is_set(self, node: ast.expr) -> bool:
        return self.types.kind(node, self.scope) is Kind.SET

    def _report(self, node: ast.expr, problem: str, *, start: ast.stmt | ast.expr | None = None) -> None:
        first = (start or node).lineno
        self.findings.append(Finding(first, node.end_lineno or first, node.col_offset + 1, problem))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            self._enter(node)
        else:
            super().visit(node)

    def visit_For(self, node: ast.For) -> None:
        if self._is_set(node.iter):
            self._report(node.iter, "a loop takes the order of a set", start=node)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._visit_comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._visit_comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._visit_comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._order_free.add(node)
        self._visit_comprehension(node)

    def _visit_comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp) -> None:
        inner = self.types.inside(node, self.scope)
        for generator in node.generators:
            if node in self._order_free:
                self._order_free.add(generator.iter)
            elif self.types.kind(generator.iter, inner) is Kind.SET:
                self._report(generator.iter, "a comprehension takes the order of a set")
        self._enter(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Name(id=name) if name in ORDER_FREE:
                self._visit_order_free(node, name)
            case ast.Name(id=name):
                self._visit_taker(node, name, TAKES_ORDER)
            case ast.Attribute(value=owner, attr=name) if self._is_set(owner):
                self._order_free.update(node.args)
                if name == "pop":
                    self._report(node, "pop() takes whatever element comes first in a set")
            case ast.Attribute(attr=name):
                self._visit_taker(node, name, TAKES_ORDER_AS_METHOD)
        self.generic_visit(node)

    def _visit_order_free(self, node: ast.Call, name: str) -> None:
        if name not in KEYED or _is_total(node):
            self._order_free.update(node.args)
            return
        for argument in filter(self._is_set, node.args):
            self._report(argument, f"{name}() leaves ties under its key in the order of a set")

    def _visit_taker(self, node: ast.Call, name: str, takers: Sequence[str]) -> None:
        if node in self._order_free and name in PASSED_ON:
            self._order_free.update(node.args)
        elif name in takers and any(self._is_set(argument) for argument in node.args):
            self._report(node, f"{name}() takes the order of a set")

    def visit_Set(self, node: ast.Set) -> None:
        self._order_free.update(node.elts)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        if node not in self._order_free and self._is_set(node.value):
            self._report(node, "unpacking takes the order of a set")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._is_set(node.value) and any(map(_takes_several, node.targets)):
            self._report(node.value, "unpacking takes the order of a set", start=node)
        self.generic_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        if self._is_set(node.value):
            self._report(node.value, "yield from takes the order of a set", start=node)
        self.generic_visit(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> None:
        if self._is_set(node.value):
            self._report(node.value, "text takes the order of a set")
        self.generic_visit(node)


def _is_total(call: ast.Call) -> bool:
    """Whether a call of `sorted`, `min` or `max` has no key, or one that ends in the element itself."""
    match [keyword.value for keyword in call.keywords if keyword.arg == "key"]:
        case []:
            return True
        case [ast.Lambda(args=ast.arguments(args=[ast.arg(arg=name)]), body=ast.Tuple(elts=[*_, ast.Name(id=last)]))]:
            return name == last
    return False


def _takes_several(target: ast.expr) -> bool:
    match target:
        case ast.Tuple(elts=[ast.Name() | ast.Attribute()]) | ast.List(elts=[ast.Name() | ast.Attribute()]):
            return False
    return isinstance(target, (ast.Tuple, ast.List))


def escapes(source: str) -> Iterator[Escape]:
    """Yield the escape comments of a module."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and (match := _ESCAPE.match(token.string)):
            line = covers = token.start[0]
            while covers <= len(lines) and lines[covers - 1].lstrip().startswith("#"):
                covers += 1
            yield Escape(line, covers, match["reason"])


def _unexcused(findings: Sequence[Finding], found_escapes: Iterable[Escape]) -> Iterator[Finding]:
    excused: list[Finding] = []
    for escape in found_escapes:
        covered = [finding for finding in findings if finding.line <= escape.covers <= finding.last_line]
        if not escape.reason:
            yield Finding(escape.line, escape.line, 1, "the escape gives no reason")
        elif not covered:
            yield Finding(escape.line, escape.line, 1, "the escape excuses nothing")
        else:
            excused.extend(covered)
    yield from (finding for finding in findings if finding not in excused)


def check(sources: dict[str, str]) -> list[tuple[str, Finding]]:
    """Return what is wrong in modules given as path and text, in the order of paths and lines."""
    modules = {path: ast.parse(source, path) for path, source in sources.items()}
    declared = {path: Declarations.of(module) for path, module in modules.items()}
    everywhere = Declarations()
    for declarations in declared.values():
        everywhere.merge(declarations)
    found: list[tuple[str, Finding]] = []
    for path, module in sorted(modules.items()):
        types = SetTypes(Annotations.of(module), declared[path], everywhere)
        remaining = _unexcused(_Finder(types).search(module), escapes(sources[path]))
        found.extend((path, finding) for finding in sorted(remaining, key=lambda it: (it.line, it.column)))
    return found


def _modules(path: Path) -> Iterable[Path]:
    return path.rglob("*.py") if path.is_dir() else [path]


def main(arguments: Sequence[str]) -> int:
    """Check the files and folders named, print what is wrong, and return the exit status."""
    missing = [argument for argument in arguments if not Path(argument).exists()]
    if missing or not arguments:
        print(f"set-order: no such path: {', '.join(missing)}" if missing else "set-order: name files or folders")
        return 2
    paths = [path for argument in arguments for path in _modules(Path(argument))]
    try:
        found = check({str(path): path.read_text(encoding="utf-8") for path in paths})
    except SyntaxError as error:
        print(f"{error.filename}:{error.lineno}: {error.msg}")
        return 2
    for path, finding in found:
        print(f"{path}:{finding.line}:{finding.column}: {finding.problem}")
    if found:
        print(f'set-order: {len(found)} found; sort the set, or say why with "# set-order: <reason>"')
        return 1
    print(f"set-order: {len(paths)} files, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
