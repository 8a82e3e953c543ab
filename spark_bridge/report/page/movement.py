"""What moves from where to where: by broker if these are few, else by rack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from attrs import frozen

from spark_bridge.model.summary import Flow, RackFlow, Summary
from spark_bridge.report.charts.matrix import MOST, Cell, gathered, matrix
from spark_bridge.report.markup import Node, el
from spark_bridge.report.measures import size
from spark_bridge.report.page.parts import head, number, row, section, table
from spark_bridge.report.racks import by_rack, rack_flows, rack_name
from spark_bridge.report.words import Cost, things

_LISTED: Final = 20


@frozen
class _Drawn:
    """What a matrix shows: `cells` between names in an `order`, of `what`."""

    cells: Sequence[Cell]
    order: Sequence[str]
    what: str


def movement_section(summary: Summary) -> Node | None:
    """Return the matrix and the greatest flows; nothing for a plan that moves nothing."""
    if not summary.flows:
        return None
    by = _by_racks(summary) if _has_many_brokers(summary) else _by_brokers(summary)
    write: Callable[[int], str] = _replicas if Cost.of(summary).in_replicas else size
    title = f"What moves between {by.what}"
    drawing = el("div", matrix(by.cells, by.order, write, title), class_="scroll", tabindex="0", aria_label=title)
    greatest = write(max(cell.amount for cell in by.cells))
    caption = el(
        "figcaption",
        f"From {by.what} (rows) to {by.what} (columns). The stronger the colour, the more: up to {greatest}.",
    )
    return section("What moves from where to where", el("figure", caption, drawing), _partly(summary), _list(summary))


def _has_many_brokers(summary: Summary) -> bool:
    """Return whether the brokers are too many for a matrix, and there are racks to take instead."""
    ends = {flow.source for flow in summary.flows}, {flow.destination for flow in summary.flows}
    return len(by_rack(summary.brokers)) > 1 and (summary.flows_left > 0 or max(map(len, ends)) > MOST)


def _by_brokers(summary: Summary) -> _Drawn:
    amount = _amount_of(summary)
    cells = [Cell(str(f.source), str(f.destination), amount(f)) for f in summary.flows]
    return _Drawn(gathered(cells), [str(broker.id) for broker in summary.brokers], "brokers")


def _by_racks(summary: Summary) -> _Drawn:
    amount = _amount_of(summary)
    cells = [Cell(rack_name(f.source), rack_name(f.destination), amount(f)) for f in rack_flows(summary)]
    return _Drawn(gathered(cells), [rack_name(rack) for rack in by_rack(summary.brokers)], "racks")


def _amount_of(summary: Summary) -> Callable[[Flow | RackFlow], int]:
    """Return what tells how much a flow is: whether replicas count is asked once, for it looks at every broker."""
    return attrgetter("replicas" if Cost.of(summary).in_replicas else "bytes")


def _replicas(number: int) -> str:
    return things(number, "replica")


def _partly(summary: Summary) -> Node | None:
    if not summary.flows_left or (summary.rack_flows and _has_many_brokers(summary)):
        return None
    seen = sum(flow.bytes for flow in summary.flows)
    text = f"Only the {len(summary.flows):,} greatest flows between brokers are drawn: {size(seen)}."
    return el("p", text, class_="quiet")


def _list(summary: Summary) -> Node:
    listed = summary.flows[:_LISTED]
    left = len(summary.flows) - len(listed) + summary.flows_left
    heads = [head(name, number=True) for name in ("from broker", "to broker", "replicas", "bytes")]
    rows = (
        row(number(str(f.source)), number(str(f.destination)), number(f"{f.replicas:,}"), number(size(f.bytes)))
        for f in listed
    )
    more = f" ({left:,} more are not listed)" if left else ""
    whole = table(f"The greatest flows between brokers{more}", [row(*heads)], rows, "narrow")
    return el("details", el("summary", "The greatest flows as a table"), whole)
