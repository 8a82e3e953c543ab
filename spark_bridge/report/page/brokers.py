"""Brokers: the hottest that remain, and all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spark_bridge.model.summary import BrokerChange, Summary
from spark_bridge.report.markup import Node, el
from spark_bridge.report.measures import Measure, known, percent
from spark_bridge.report.page.parts import change_heads, changes, head, number, row, section, table, words
from spark_bridge.report.racks import rack_name
from spark_bridge.report.shares import Hot, hottest, that_change_most

_LISTED: Final = 2000


def hottest_section(summary: Summary) -> Node | None:
    """Return who ends farthest above its share, and why; nothing where nobody does."""
    found = hottest(summary)
    if not found:
        return None
    heads = [head("broker"), head("rack"), head("above its share", number=True), head("why"), head("aim")]
    return section(
        "The hottest brokers", table("Farthest above their share after the plan", [row(*heads)], map(_hot, found))
    )


def _hot(hot: Hot) -> Node:
    rack = "-" if hot.broker.rack is None else hot.broker.rack
    aim = "missed" if hot.beyond else "met"
    return row(
        el("th", str(hot.broker.id), scope="row"),
        words(rack),
        number(percent(hot.excess)),
        el("td", hot.why, class_="sentence"),
        words(aim),
    )


def brokers_section(summary: Summary) -> Node:
    """Return every broker before and after; of very many, those that change most."""
    shown: Sequence[BrokerChange] = summary.brokers
    caption = "Each broker before and after"
    if len(shown) > _LISTED:
        shown = that_change_most(summary, _LISTED)
        caption = f"The {len(shown):,} brokers of {len(summary.brokers):,} that change most; the JSON has all"
    measures = known(summary)
    disks = any(broker.disk for broker in shown)
    heads = change_heads(["broker", "rack", "state"], measures, ["disk after"] if disks else [])
    rows = (_row(broker, measures, disks=disks) for broker in shown)
    return section("Brokers", table(caption, heads, rows, "sortable"))


def _row(broker: BrokerChange, measures: Sequence[Measure], *, disks: bool) -> Node:
    cells = [el("th", str(broker.id), scope="row", data_value=broker.id)]
    cells += [words(rack_name(broker.rack)), words(broker.state), *changes(broker, measures)]
    if disks:
        cells.append(_disk(broker))
    return row(*cells)


def _disk(broker: BrokerChange) -> Node:
    if not broker.disk:
        return number("-", -1)
    part = broker.after.bytes / broker.disk
    return number(percent(part), part)
