"""The top of the page: what the plan is for, what it costs, what must not be missed, and how even it ends."""

from __future__ import annotations

from spark_bridge.model.summary import Evenness, Summary
from spark_bridge.report.markup import Node, el
from spark_bridge.report.measures import percent
from spark_bridge.report.page.parts import head, number, row, table, words
from spark_bridge.report.words import IDLE, Cost, caveats, is_idle, moves_data, things, verdict, warnings


def headline(summary: Summary) -> Node:
    """Return the top of the page."""
    racks = len({broker.rack for broker in summary.brokers} - {None})
    cluster = [things(summary.partitions, "partition"), things(len(summary.brokers), "broker")]
    if racks:
        cluster.append(things(racks, "rack"))
    return el(
        "header",
        el("h1", f"Plan: {summary.goal}"),
        el("p", " · ".join([*cluster, f"planned by the {summary.engine} engine"]), class_="quiet"),
        _options(summary),
        el("p", IDLE) if is_idle(summary) else None,
        *(el("p", text, class_="warning", role="note") for text in warnings(summary)),
        _tiles(summary),
        *(el("p", text, class_="quiet") for text in caveats(summary)),
        _evenness(summary),
    )


def _options(summary: Summary) -> Node | None:
    if not summary.options:
        return None
    pairs = (el("span", el("b", name), f" {value}") for name, value in summary.options.items())
    return el("p", *pairs, class_="options")


def _tiles(summary: Summary) -> Node:
    tiles = _moves(summary) if moves_data(summary) else []
    part = percent(summary.changed / summary.partitions) if summary.partitions else "none"
    order = f"{part} of all, {summary.reordered:,} by order only"
    tiles.append(_tile("partitions that change", f"{summary.changed:,}", order))
    if summary.evenness:
        worst = max(summary.evenness, key=lambda evenness: evenness.after)
        was = max(summary.evenness, key=lambda evenness: evenness.before)
        before = f"before: {percent(was.before)} in {was.measure}"
        tiles.append(_tile("farthest from its share", f"{percent(worst.after)} in {worst.measure}", before))
    return el("dl", *tiles, class_="tiles")


def _moves(summary: Summary) -> list[Node]:
    cost = Cost.of(summary)
    moved = f"{things(summary.moved_replicas, 'replica')} in {things(summary.changed - summary.reordered, 'partition')}"
    return [
        _tile("to move", cost.text(cost.moved), moved),
        _tile("least possible", cost.text(cost.least), cost.compared()),
    ]


def _tile(name: str, value: str, more: str) -> Node:
    return el("div", el("dt", name), el("dd", value, class_="value"), el("dd", more, class_="quiet"))


def _evenness(summary: Summary) -> Node | None:
    if not summary.evenness:
        return None
    heads = [head("measure"), *(head(name, number=True) for name in ("before", "after", "aimed at")), head("result")]
    caption = "How far the farthest broker is from its share"
    return table(caption, [row(*heads)], map(_evenness_row, summary.evenness), "narrow")


def _evenness_row(evenness: Evenness) -> Node:
    parts = (evenness.before, evenness.after, evenness.reachable)
    return row(words(evenness.measure), *(number(percent(part)) for part in parts), words(verdict(evenness)))
