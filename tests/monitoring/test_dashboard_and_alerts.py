"""The dashboard and the alerts in monitoring/ name metrics and labels that exist; promtool agrees, if there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import CollectorRegistry

from actors import EventStatistics
from controller.monitoring.measurements import Measurements
from controller.monitoring.metrics import ControllerMetrics
from tests.kit.promql import read
from transport.store.protocol import SessionState

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "monitoring/grafana-dashboard.json").read_text(encoding="utf-8"))
ALERTS_FILE = ROOT / "monitoring/prometheus-alerts.yml"
ALERTS = [rule for group in yaml.safe_load(ALERTS_FILE.read_text())["groups"] for rule in group["rules"]]
CASES_FILE = Path(__file__).parent / "alert_cases.yml"
DOCS = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")

OF_THE_TARGET: Final = frozenset({"job", "instance"})
"""The labels that Prometheus itself gives to each series."""

PROMTOOL = shutil.which("promtool")


def series() -> dict[str, frozenset[str]]:
    """Return the labels of each series that a controller serves."""
    metrics = ControllerMetrics(
        Measurements(),
        lambda: 0,
        lambda: {"Elect": EventStatistics()},
        lambda: SessionState.CONNECTED,
        lambda: 0,
    )
    found = {name: labels for metric in metrics.collect() for name, labels in of_metric(metric)}
    return found | dict.fromkeys((metric.name for metric in of_process()), frozenset())


def of_metric(metric: Metric) -> Iterator[tuple[str, frozenset[str]]]:
    labels = frozenset(getattr(metric, "_labelnames", ()))
    match metric.type:
        case "counter":
            yield f"{metric.name}_total", labels
        case "histogram":
            yield f"{metric.name}_bucket", labels | {"le"}
            yield from ((f"{metric.name}_{suffix}", labels) for suffix in ("sum", "count"))
        case _:
            yield metric.name, labels


def of_process() -> Iterator[Metric]:
    for metric in ProcessCollector(registry=CollectorRegistry()).collect():
        metric.name += "_total" if metric.type == "counter" else ""
        yield metric


SERIES = series()


def faults(expression: str) -> list[str]:
    """Return what an expression names that does not exist."""
    query = read(expression)
    known = OF_THE_TARGET.union(*(SERIES.get(name, frozenset()) for name, _ in query.metrics))
    return [
        *(f"no metric {name}" for name, _ in query.metrics if name not in SERIES),
        *(f"no label {label}" for label in query.grouped_by if label not in known),
        *(
            f"no label {label} of {name}"
            for name, labels in query.metrics
            for label in labels
            if label not in SERIES.get(name, frozenset()) | OF_THE_TARGET
        ),
        *([] if query.metrics else ["no metric at all"]),
    ]


def targets() -> list[dict[str, Any]]:
    return [target for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sum by (job) (klamm_events_total) > 0", []),
        ("klamm_event_total", ["no metric klamm_event_total"]),
        ('rate(klamm_events_total{event="Elect", job="$job"}[5m])', []),
        ('klamm_events_total{events="Elect"}', ["no label events of klamm_events_total"]),
        ("sum(klamm_events_total) by (state)", ["no label state"]),
        ("sum by (broker_id) (klamm_events_total)", ["no label broker_id"]),
        ("sum by (le) (klamm_events_total)", ["no label le"]),
        ('klamm_events_total{event="Elect"', None),
        ('x{b="1"} / on (c) klamm_events_total', ["no metric x", "no label c", "no label b of x"]),
        ("1 + 1", ["no metric at all"]),
    ],
)
def test_what_does_not_exist_is_found(expression: str, expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="what is this"):
            read(expression)
    else:
        assert faults(expression) == expected


@pytest.mark.requirement("D11")
def test_each_panel_shows_what_exists() -> None:
    assert {target["expr"]: found for target in targets() if (found := faults(target["expr"]))} == {}
    assert len(targets()) >= 40


def test_the_dashboard_belongs_to_no_installation() -> None:
    sources = {panel["datasource"]["uid"] for panel in DASHBOARD["panels"] if "datasource" in panel}
    assert sources | {target["datasource"]["uid"] for target in targets()} == {"${datasource}"}
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert {variable["name"] for variable in DASHBOARD["templating"]["list"]} == {"datasource", "job"}
    for variable in re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"])):
        assert variable in {"datasource", "job", "__rate_interval"}


def test_no_panel_covers_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


@pytest.mark.parametrize("target", targets(), ids=lambda target: target["expr"][:40])
def test_legends_name_labels_that_are_left(target: dict[str, Any]) -> None:
    assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= set(read(target["expr"]).grouped_by)


@pytest.mark.requirement("D11")
@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_each_alert_is_about_what_exists(rule: dict[str, Any]) -> None:
    assert faults(rule["expr"]) == []
    assert rule["labels"]["severity"] in {"critical", "warning"}
    query = read(rule["expr"])
    own = {label for name, _ in query.metrics for label in SERIES[name]} | OF_THE_TARGET
    left = set(query.grouped_by) - {"le"} or ({*own} if "absent" not in rule["expr"] else set())
    assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= left


def test_the_docs_list_the_alerts() -> None:
    rows = re.findall(r"^\| `(Klamm\w+)` \| (\w+) \| ([\w ]+) \|", DOCS, re.MULTILINE)
    told = [(rule["alert"], rule["labels"]["severity"], rule.get("for", "at once")) for rule in ALERTS]
    assert [(name, severity, time.replace(" min", "m")) for name, severity, time in rows] == told


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool to read the rules with: apt-get install prometheus")
@pytest.mark.parametrize("arguments", [("check", "rules", ALERTS_FILE), ("test", "rules", CASES_FILE)], ids=str)
def test_promtool_agrees(arguments: tuple[str, str, Path]) -> None:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_case_in_which_it_fires() -> None:
    cases = yaml.safe_load(CASES_FILE.read_text())
    fired = {test["alertname"] for case in cases["tests"] for test in case["alert_rule_test"] if test.get("exp_alerts")}
    assert fired == {rule["alert"] for rule in ALERTS}
