"""Why partitions change."""

from __future__ import annotations

from typing import Final

from spark_bridge.model.summary import Summary
from spark_bridge.report.markup import Node, el
from spark_bridge.report.page.parts import head, number, row, section, table

_LISTED: Final = 30


def reasons_section(summary: Summary) -> Node | None:
    """Return the reasons with most partitions first; nothing for a plan that changes nothing."""
    if not summary.reasons:
        return None
    ranked = sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0]))
    greatest = ranked[0][1] or 1
    rows = [row(el("td", reason), number(f"{count:,}"), _bar(count / greatest)) for reason, count in ranked[:_LISTED]]
    left = len(ranked) - len(rows)
    more = f" ({left:,} more reasons are not listed)" if left else ""
    heads = [head("reason"), head("partitions", number=True), el("td")]
    return section(
        "Why partitions change", table(f"One reason for each partition{more}", [row(*heads)], rows, "narrow")
    )


def _bar(part: float) -> Node:
    return el(
        "td", el("div", class_="bar", style=f"width: {max(part * 100, 1):.0f}%"), class_="bars", aria_hidden="true"
    )
