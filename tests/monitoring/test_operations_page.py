"""docs/operations.md names the existing metrics, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from actors import EventStatistics
from controller.monitoring.controller_states import ControllerState
from controller.monitoring.measurements import Measurements
from controller.monitoring.metrics import ControllerMetrics
from transport.store.protocol import SessionState

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
TIMER = "kafka_controller_controllerstats_STATErateandtimems"


def served() -> set[str]:
    metrics = ControllerMetrics(
        Measurements(),
        lambda: 0,
        lambda: {"Elect": EventStatistics()},
        lambda: SessionState.CONNECTED,
        lambda: 0,
    )
    return {metric.name + ("_total" if metric.type == "counter" else "") for metric in metrics.collect()}


def documented() -> set[str]:
    rows = set(re.findall(r"^\| `((?:kafka|klamm)_\w+)` \|", PAGE, re.MULTILINE))
    [states] = re.findall(rf"^\| `{TIMER}` \| (.*)$", PAGE, re.MULTILINE)
    timers = {TIMER.replace("STATE", state) for state in re.findall(r"`(\w+)`", states)}
    return rows - {TIMER} | timers


def test_the_table_is_complete() -> None:
    assert documented() == served()
    assert {f"{str(s.timer).lower()}rateandtimems" for s in ControllerState if s.timer} <= {
        name.rpartition("_")[2] for name in documented()
    }
