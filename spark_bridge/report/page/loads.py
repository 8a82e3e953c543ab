"""Load per broker before and after: bars for a few brokers, curves for many."""

from __future__ import annotations

from collections.abc import Sequence

from spark_bridge.model.summary import BrokerChange, Summary
from spark_bridge.report.charts.axis import Point
from spark_bridge.report.charts.bars import MOST, bars
from spark_bridge.report.charts.curve import curve
from spark_bridge.report.markup import Node, el
from spark_bridge.report.measures import EVENED, Measure, known, percent
from spark_bridge.report.page.parts import legend, section
from spark_bridge.report.shares import aims, share_of


def loads_section(summary: Summary) -> Node:
    """Return the plots of each measure that anything is known of."""
    measures = [measure for measure in known(summary) if measure in EVENED]
    few = len(summary.brokers) <= MOST
    entries = [("before", "before"), ("after", "after"), ("band", "where the plan aims: the band")]
    if few:
        entries.insert(2, ("over", "after, above the band"))
    return section(
        "Load per broker",
        el("p", "100 % is a broker's share: what it would carry if all were loaded by capacity.", class_="quiet"),
        legend(*entries),
        el("div", *(_figure(summary, measure) for measure in measures), class_="plots"),
    )


def points(brokers: Sequence[BrokerChange], measure: Measure, unit: float, names: Sequence[str]) -> list[Point]:
    """Return each broker's load as a part of its share, where `unit` is the share of one unit of capacity.

    One without a share of its own (a rack whose brokers all leave) is compared with one unit.
    """
    return [
        Point(
            name,
            measure.of(broker.before) / _share(broker, unit),
            measure.of(broker.after) / _share(broker, unit),
            _title(broker, measure, unit, name),
        )
        for name, broker in zip(names, brokers, strict=True)
    ]


def _share(broker: BrokerChange, unit: float) -> float:
    return unit * broker.capacity or unit or 1.0


def _title(broker: BrokerChange, measure: Measure, unit: float, name: str) -> str:
    before, after = measure.of(broker.before), measure.of(broker.after)
    of_share = percent(after / _share(broker, unit))
    return (
        f"{name} ({broker.state}): {measure.text(before)} before, {measure.text(after)} after: {of_share} of its share"
    )


def _figure(summary: Summary, measure: Measure) -> Node:
    unit = share_of(summary.brokers, measure)
    named = [str(broker.id) for broker in summary.brokers]
    drawn = points(summary.brokers, measure, unit, named)
    draw = bars if len(drawn) <= MOST else curve
    title = f"{measure.name} per broker before and after"
    drawing = draw(drawn, aims(summary).get(measure.name, 0.0), title, "brokers")
    return el("figure", el("figcaption", _caption(summary, measure, unit)), drawing)


def _caption(summary: Summary, measure: Measure, unit: float) -> Node:
    capacities = {broker.capacity for broker in summary.brokers}
    of_each = f" a broker's share is {measure.text(unit * min(capacities))}" if len(capacities) == 1 else ""
    return el("span", el("b", measure.name), of_each and f":{of_each}")
