"""Each rack before and after."""

from __future__ import annotations

from typing import Final

from spark_bridge.model.summary import Summary
from spark_bridge.report.charts.bars import MOST, bars
from spark_bridge.report.markup import Node, el
from spark_bridge.report.measures import BYTES, REPLICAS, known
from spark_bridge.report.page.loads import points
from spark_bridge.report.page.parts import change_heads, changes, number, row, section, table
from spark_bridge.report.racks import by_rack, rack_name, together
from spark_bridge.report.shares import aims, share_of

_FEWEST: Final = 2


def racks_section(summary: Summary) -> Node | None:
    """Return a plot and a table of racks; nothing where there are no racks to compare."""
    racks = by_rack(summary.brokers)
    if len(racks) < _FEWEST:
        return None
    measures = known(summary)
    names = [rack_name(rack) for rack in racks]
    wholes = [together(members) for members in racks.values()]
    rows = (
        row(el("th", name, scope="row"), number(f"{len(members):,}"), *changes(whole, measures))
        for name, members, whole in zip(names, racks.values(), wholes, strict=True)
    )
    heads = change_heads(["rack", "brokers"], measures)
    return section("Racks", _plot(summary), table("Each rack before and after", heads, rows))


def _plot(summary: Summary) -> Node | None:
    racks = by_rack(summary.brokers)
    if len(racks) > MOST:
        return None
    measure = BYTES if BYTES in known(summary) else REPLICAS
    wholes = [together(members) for members in racks.values()]
    names = [rack_name(rack) for rack in racks]
    drawn = points(wholes, measure, share_of(summary.brokers, measure), names)
    title = f"{measure.name} per rack before and after"
    drawing = bars(drawn, aims(summary).get(measure.name, 0.0), title, "racks")
    return el("figure", el("figcaption", el("b", measure.name), " per rack, in percent of its share"), drawing)
