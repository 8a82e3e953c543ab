"""Reads from expressions of Prometheus' which metrics they name, and which labels of each."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_RANGE: Final = re.compile(r"\[[^]]*\]")
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_METRIC: Final = re.compile(r"(?<![\w$])([a-zA-Z_:][\w:]*)\b(?!\s*\()(?:\s*\{([^}]*)\})?")
_NAME: Final = re.compile(r"[a-zA-Z_]\w*")
_WORDS: Final = frozenset({"and", "or", "unless", "bool", "offset"})
_REST: Final = re.compile(r"[\w\s.(),+*/%^<>=!-]*")
"""The rest of an expression without texts and metrics: functions, numbers and operators."""


@frozen
class Query:
    """The names in an expression: metrics with the labels that select their series, and labels to group by."""

    metrics: tuple[tuple[str, tuple[str, ...]], ...]
    grouped_by: tuple[str, ...]


def read(expression: str) -> Query:
    """Return what an expression names. Raises ValueError for what is none."""
    plain = _RANGE.sub("", _TEXT.sub("", expression))
    groupings = _GROUPING.findall(plain)
    without = _GROUPING.sub(" ", plain)
    if not _REST.fullmatch(_METRIC.sub("", without)):
        raise ValueError(f"what is this? {expression}")
    metrics = [(name, tuple(_NAME.findall(labels))) for name, labels in _METRIC.findall(without) if name not in _WORDS]
    return Query(tuple(metrics), tuple(name for names in groupings for name in _NAME.findall(names)))
