"""The brokers named by add-brokers: those that have their share already, those left out, and the measured evenness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from klamm.cli.planning import plan

pytestmark = pytest.mark.usefixtures("forked_bridge")

FULL = (1, 2, 3)
"""Brokers with twenty replicas each."""


def invoked(tmp_path: Path, brokers: str, *options: str, extra: tuple[dict[str, Any], ...] = ()) -> Result:
    """Plan to add brokers to a cluster of the full ones, with 4, 5, and what is in the table beside."""
    rows = [{"topic": "t", "partition": n, "replicas": [1 + n % 3, 1 + (n + 1) % 3]} for n in range(30)]
    snapshot, table = tmp_path / "snapshot.json", tmp_path / "brokers.json"
    snapshot.write_text(json.dumps({"brokers": [{"id": id_} for id_ in (*FULL, 4, 5)], "partitions": rows}))
    table.write_text(json.dumps(list(extra) or [{"id": 1}]))
    where = ("--snapshot", str(snapshot), "--brokers-table", str(table), "--out", f"{tmp_path}/plan.json")
    return CliRunner().invoke(plan, ["add-brokers", "--brokers", brokers, *where, *options])


def report(tmp_path: Path, brokers: str, *options: str, extra: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    done = invoked(tmp_path, brokers, "-o", "json", *options, extra=extra)
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("brokers", "notes"),
    [
        ("4,5", []),
        ("4", ["broker 5 is empty and not among --brokers: name it as well, or it stays empty"]),
        (
            "1,2",
            [
                "brokers 1, 2 of --brokers have their share already: they receive nothing",
                "brokers 4, 5 are empty and not among --brokers: name them as well, or they stay empty",
            ],
        ),
        ("1,4,5", ["broker 1 of --brokers has its share already: it receives nothing"]),
    ],
)
def test_brokers_that_are_full_and_those_left_out_are_told(brokers: str, notes: list[str], tmp_path: Path) -> None:
    assert report(tmp_path, brokers)["notes"] == notes
    said = " ".join(invoked(tmp_path, brokers).stderr.split())
    assert all(note in said for note in notes)


def test_who_is_excluded_is_not_called_left_out(tmp_path: Path) -> None:
    assert report(tmp_path, "4", "--exclude", "5")["notes"] == []
    assert report(tmp_path, "4", extra=({"id": 5, "state": "draining"},))["notes"] == []


def test_what_is_measured_are_brokers_that_may_change(tmp_path: Path) -> None:
    # Broker 5 has nothing before and after, since nobody named it.
    even = {row["measure"]: row for row in report(tmp_path, "4")["evenness"]}
    assert (even["replicas"]["before"], even["leaders"]["before"]) == (1.0, 1.0)
    assert round(even["replicas"]["after"], 3) == round(16 / 12 - 1, 3)
    assert round(even["leaders"]["after"], 3) == round(8 / 6 - 1, 3)
    # The full ones may not lose anything for each other.
    even = {row["measure"]: row for row in report(tmp_path, "1,2")["evenness"]}
    assert round(even["replicas"]["after"], 3) == round(20 / 12 - 1, 3)
    even = {row["measure"]: row for row in report(tmp_path, "1,2,3")["evenness"]}
    assert even["replicas"]["after"] == 0.0


@pytest.mark.parametrize(
    ("extra", "line"),
    [
        ({"id": 9, "state": "dead"}, "broker 9 is dead and cannot be given its share"),
        ({"id": 9}, "broker 9 is dead and cannot be given its share"),
        ({"id": 4, "state": "draining"}, "broker 4 is draining and cannot be given its share"),
        ({"id": 4, "state": "excluded"}, "broker 4 is excluded and cannot be given its share"),
    ],
)
def test_brokers_that_cannot_be_added_are_refused(extra: dict[str, Any], line: str, tmp_path: Path) -> None:
    done = invoked(tmp_path, f"5,{extra['id']}", extra=(extra,))
    cure = "leave it out, or give it the state live in the table of brokers (--brokers-table)"
    assert (done.exit_code, done.stderr) == (1, f"Error: {line}: {cure}\n")
    assert not (tmp_path / "plan.json").exists()
