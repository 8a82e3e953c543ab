"""Pieces that the sections of the page are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from spark_bridge.model.summary import BrokerChange
from spark_bridge.report.markup import Content, Node, el
from spark_bridge.report.measures import Measure

BEFORE_AND_AFTER: Final = ("before", "after", "change")


def section(title: str, *content: Content) -> Node:
    """Return a section under a heading."""
    return el("section", el("h2", title), *content)


def table(caption: str, heads: Sequence[Node], rows: Iterable[Node], class_: str = "") -> Node:
    """Return a table that scrolls by itself where it is too wide; `heads` are its rows of headings."""
    whole = el("table", el("caption", caption), el("thead", *heads), el("tbody", *rows), class_=class_ or None)
    return el("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def row(*cells: Node) -> Node:
    """Return a row of a table."""
    return el("tr", *cells)


def head(text: str, *, span: int = 1, number: bool = False) -> Node:
    """Return the heading of a column, or of several; that of numbers stands above their end."""
    kind = "group" if span > 1 else "number" if number else None
    scope = "colgroup" if span > 1 else "col"
    return el("th", text, scope=scope, colspan=span if span > 1 else None, class_=kind)


def words(text: str) -> Node:
    """Return a cell with text."""
    return el("td", text)


def number(text: str, value: float | None = None) -> Node:
    """Return a cell with a number, and what it is sorted by."""
    return el("td", text, class_="number", data_value=value)


def changes(broker: BrokerChange, measures: Iterable[Measure]) -> list[Node]:
    """Return the cells before, after and change of each measure."""
    cells = []
    for measure in measures:
        before, after = measure.of(broker.before), measure.of(broker.after)
        cells += [
            number(measure.write(before), before),
            number(measure.write(after), after),
            number(measure.difference(broker), after - before),
        ]
    return cells


def change_heads(first: Sequence[str], measures: Sequence[Measure], last: Sequence[str] = ()) -> list[Node]:
    """Return the two rows of headings of a table with `changes`, between columns of its own."""
    blank = [el("td", colspan=len(first))]
    groups = [head(measure.heading, span=3) for measure in measures]
    after = [el("td", colspan=len(last))] if last else []
    names = [head(name) for name in first]
    names += [head(name, number=True) for _ in measures for name in BEFORE_AND_AFTER]
    names += [head(name, number=True) for name in last]
    return [row(*blank, *groups, *after), row(*names)]


def legend(*entries: tuple[str, str]) -> Node:
    """Return what colours mean: pairs of a class and a text."""
    items = (el("li", el("span", class_=f"swatch {kind}"), text) for kind, text in entries)
    return el("ul", *items, class_="legend")
