"""Edits of one function's source, for the duration of a test: how a small mistake is planted in the product.

An edited function keeps its identity, so the mistake is present wherever the function was imported. An edit fails if
the function, or the text that it replaces, does not exist any more.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType, FunctionType
from typing import cast

import pytest

Replacement = tuple[str, str]
"""Text of a function, which must occur in it once, and the text in its place."""


class StaleEdit(Exception):
    """The product has changed: an edit does not fit it any more."""


def edit(patch: pytest.MonkeyPatch, name: str, *replacements: Replacement) -> None:
    """Replace text in a function, named like "package.module:Class.method"."""
    function = cast("FunctionType", resolve_name(name))
    code = edited_code(function, replacements)
    patch.setattr(function, "__code__", code)


def edited_code(function: FunctionType, replacements: tuple[Replacement, ...]) -> CodeType:
    """Return the code of a function after replacements in its source."""
    lines, first = inspect.getsourcelines(function)
    path = Path(inspect.getsourcefile(function) or "")
    before = path.read_text().splitlines(keepends=True)
    text = "".join(lines)
    for old, new in replacements:
        if text.count(old) != 1:
            raise StaleEdit(f"{function.__qualname__} has {text.count(old)} times: {old}")
        text = text.replace(old, new)
    # The whole module is compiled, so that names, line numbers and enclosing classes are those of the original.
    source = "".join([*before[: first - 1], text, *before[first - 1 + len(lines) :]])
    return code_of(compile(source, str(path), "exec", dont_inherit=True), function.__qualname__)


def code_of(module: CodeType, qualname: str) -> CodeType:
    """Return the code of a function that a module's code contains."""
    for code in _codes(module):
        if code.co_qualname == qualname:
            return code
    raise StaleEdit(f"there is no {qualname} after the edit")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
