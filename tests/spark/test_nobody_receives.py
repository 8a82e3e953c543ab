"""Clusters without receivers: no replica moves, no broker is called hot, and leaders are still evened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from klamm.cli.planning import plan

pytestmark = pytest.mark.usefixtures("forked_bridge")

LISTS = [[1, 2], [1, 3], [1, 2], [1, 3], [1, 2], [1, 3], [2, 1], [2, 1], [3, 1]]
"""Broker 1 has all replicas that it can, and leads six of nine."""


def report(tmp_path: Path, command: str, *options: str, states: str = "") -> dict[str, Any]:
    rows = [{"topic": "t", "partition": n, "replicas": replicas} for n, replicas in enumerate(LISTS)]
    snapshot, table = tmp_path / "snapshot.json", tmp_path / "brokers.csv"
    snapshot.write_text(json.dumps({"brokers": [{"id": id_} for id_ in (1, 2, 3)], "partitions": rows}))
    table.write_text(f"id,state\n{states}")
    where = ("--snapshot", str(snapshot), "--brokers-table", str(table), "--out", f"{tmp_path}/plan.json")
    done = CliRunner().invoke(plan, [command, *where, "-o", "json", *options])
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


NOTE = "no broker may receive replicas: all of them are excluded, draining or dead, so none moves"


@pytest.mark.parametrize(
    ("options", "states"),
    [(("--exclude", "1,2,3"), ""), ((), "1,excluded\n2,excluded\n3,excluded\n")],
    ids=["by option", "by table"],
)
def test_where_all_are_excluded_leaders_are_chosen_among_them(
    options: tuple[str, ...], states: str, tmp_path: Path
) -> None:
    found = report(tmp_path, "rebalance", *options, states=states)
    assert found["notes"] == [NOTE]
    assert [row["measure"] for row in found["evenness"]] == ["leaders"]
    assert [broker["after"]["leaders"] for broker in found["brokers"]] == [3, 3, 3]
    assert [broker["state"] for broker in found["brokers"]] == ["excluded"] * 3
    assert (found["moved_replicas"], found["hottest"]) == (0, [])


def test_what_is_dead_leads_nothing_even_where_its_replicas_stay(tmp_path: Path) -> None:
    found = report(tmp_path, "relieve", "--brokers", "2", "--exclude", "3", "--leaders", "all", states="1,dead\n")
    assert [broker["after"]["leaders"] for broker in found["brokers"]] == [0, 5, 4]


def test_an_excluded_broker_leads_no_more_than_it_did(tmp_path: Path) -> None:
    found = report(tmp_path, "rebalance", "--exclude", "2,3")
    assert [broker["state"] for broker in found["brokers"]] == ["live", "excluded", "excluded"]
    assert [broker["after"]["leaders"] for broker in found["brokers"]] == [6, 2, 1]
    assert found["notes"] == []
