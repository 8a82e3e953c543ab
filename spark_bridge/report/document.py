"""A plan's summary as a JSON document, with numbers derived from it."""

from __future__ import annotations

from typing import Any

from attrs import asdict

from spark_bridge.model.summary import Summary
from spark_bridge.report.racks import by_rack, together
from spark_bridge.report.shares import Hot, hottest
from spark_bridge.report.words import Cost


def document(summary: Summary) -> dict[str, Any]:
    """Return a summary with `ratio` (moved to least possible; null where nothing has to move), `racks` and `hottest`.

    Sizes are in bytes, rates in bytes per second, shares and excesses as they are compared.
    """
    racks = [
        {"rack": rack, "brokers": len(members), **_loads(members)} for rack, members in by_rack(summary.brokers).items()
    ]
    derived = {
        "ratio": Cost.of(summary).ratio,
        "racks": racks,
        "hottest": [_hot(hot) for hot in hottest(summary)],
    }
    return {**summary.to_document(), **derived}


def _loads(members: list[Any]) -> dict[str, Any]:
    whole = together(members)
    return {"before": asdict(whole.before), "after": asdict(whole.after)}


def _hot(hot: Hot) -> dict[str, Any]:
    return {
        "broker": hot.broker.id,
        "measure": hot.measure.name,
        "load": hot.measure.of(hot.broker.after),
        "share": hot.share,
        "excess": hot.excess,
        "why": hot.why,
    }
