"""Small changes of a syntax tree, each like a mistake of a programmer.

Logging, annotations, assertions and the texts of messages are left alone: no run can tell them apart.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from attrs import frozen

_SWAPPED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@frozen
class Change:
    """A change of a tree: its kind, the node whose text shows it, and what makes it."""

    kind: str
    shown: ast.AST
    make: Callable[[], object]


def changes(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of one node, without those of the nodes below it."""
    yield from _of_conditions(node)
    yield from _of_values(node)
    yield from _of_statements(node)


def _of_conditions(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield Change("negate", node.test, lambda: _negate(node))
        case ast.comprehension(ifs=[test]):
            yield Change("negate", test, lambda: _negate_filter(node))
            yield Change("drop filter", test, node.ifs.clear)
        case ast.Compare(ops=[operator]) if type(operator) in _SWAPPED:
            yield Change("compare", node, lambda: _compare(node))
        case ast.BoolOp():
            yield Change("and/or", node, lambda: _and_or(node))
            yield from (Change("drop operand", node, partial(_drop_operand, node, i)) for i in range(len(node.values)))
        case _:
            pass


def _of_values(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.BinOp() if type(node.op) in _OPERATORS:
            yield Change("operator", node, lambda: _operator(node))
        case ast.Constant(value=bool()):
            yield Change("constant", node, lambda: _set_constant(node, not node.value))
        case ast.Constant(value=int() as value):
            yield from (Change("constant", node, partial(_set_constant, node, value + by)) for by in (1, -1))
        case ast.Tuple(ctx=ast.Load()) | ast.List(ctx=ast.Load()):
            yield from (Change("drop element", node, partial(_drop, node.elts, i)) for i in range(len(node.elts)))
        case ast.Call(args=[first, second, *_]) if not any(map(_is_only_itself, (first, second))):
            yield Change("swap arguments", node, lambda: _swap_arguments(node))
        case _:
            pass


def _is_only_itself(argument: ast.expr) -> bool:
    """Return whether an argument in the place of another would always fail at once."""
    return isinstance(argument, ast.Starred) or (isinstance(argument, ast.Name) and argument.id == "context")


def _of_statements(node: ast.AST) -> Iterator[Change]:
    for name in ("body", "orelse"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        for i, statement in enumerate(block):
            if _is_dropped(statement):
                yield Change("drop statement", statement, partial(_replace, block, i, ast.Pass()))
            if i > 0 and isinstance(node, ast.FunctionDef) and isinstance(statement, (ast.Expr, ast.If, ast.For)):
                yield Change("return early", statement, partial(block.insert, i, ast.Return(value=None)))


def _is_dropped(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant) and not is_logging(statement)
    return isinstance(statement, (ast.AugAssign, ast.Continue, ast.Break, ast.Raise, ast.Delete)) or (
        isinstance(statement, ast.Return) and statement.value is None
    )


def is_logging(node: ast.AST) -> bool:
    """Return whether a statement writes a line of the log."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
            return True
        case _:
            return False


def _negate(node: ast.If | ast.While | ast.IfExp) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _negate_filter(node: ast.comprehension) -> None:
    node.ifs = [ast.UnaryOp(ast.Not(), node.ifs[0])]


def _compare(node: ast.Compare) -> None:
    node.ops = [_SWAPPED[type(node.ops[0])]()]


def _and_or(node: ast.BoolOp) -> None:
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def _drop_operand(node: ast.BoolOp, i: int) -> None:
    # Repeating another operand leaves an operation of the others.
    node.values[i] = node.values[i - 1]


def _operator(node: ast.BinOp) -> None:
    node.op = _OPERATORS[type(node.op)]()


def _set_constant(node: ast.Constant, value: bool | int) -> None:
    node.value = value


def _drop(elements: list[ast.expr], i: int) -> None:
    del elements[i]


def _swap_arguments(node: ast.Call) -> None:
    node.args[:2] = reversed(node.args[:2])


def _replace(block: list[ast.stmt], i: int, statement: ast.stmt) -> None:
    block[i] = statement
