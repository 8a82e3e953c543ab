"""`klamm plan remove-brokers`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from controller.admin.removal_planning import Plan, PlanRequest
from controller.cli.plan import plan
from spark_bridge.plan import BrokerLoad, Reassignment

pytestmark = pytest.mark.requirement("E3")

REPORT = """\
broker   rack   replicas   after   preferred leader of   after
──────────────────────────────────────────────────────────────
3        r1            2       0                     1       0
1        r1            1       3                     1       2
2 of 4 brokers change.
Replicas to move: 2, in 2 partitions.
Most minus least where some arrive: 0 in replicas, 0 in preferred leaders.
"""


@pytest.mark.usefixtures("java")
def test_prints_kafkas_json_and_reports_beside_it(snapshot_file: Path) -> None:
    result = CliRunner().invoke(plan, ["remove-brokers", "--snapshot", str(snapshot_file), "--brokers", "3"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 1, "replicas": [2, 1]},
            {"topic": "orders", "partition": 2, "replicas": [1, 4]},
        ],
    }
    assert [line.rstrip() for line in result.stderr.splitlines()] == REPORT.splitlines()


def test_a_plan_in_a_file_and_a_long_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Plan((Reassignment("orders", 0, (2, 1)),), tuple(BrokerLoad(b, None, 5, 5 + b, 1, 1) for b in range(31)))

    async def compute_plan(request: PlanRequest) -> Plan:
        await trio.lowlevel.checkpoint()
        assert request == PlanRequest("s.json", (1, 3))
        return made

    monkeypatch.setattr("controller.cli.plan.compute_plan", compute_plan)
    output = tmp_path / "plan.json"
    arguments = ["--snapshot", "s.json", "--brokers", "3, 1", "-o", str(output)]
    result = CliRunner().invoke(plan, ["remove-brokers", *arguments])
    assert (result.exit_code, result.stdout) == (0, "")
    assert output.read_text() == made.reassignment_json()
    assert result.stderr.splitlines()[2].split() == ["30", "-", "5", "35", "1", "1"]
    assert "30 of 31 brokers change, 10 of them not shown.\n" in result.stderr


@pytest.mark.parametrize(
    ("brokers", "line"),
    [
        ("9", "Error: broker 9 is not in the snapshot: choose from 1, 2, 3, 4\n"),
        ("3,x", "Error: --brokers takes broker ids such as 3,7, not '3,x'\n"),
    ],
)
def test_errors_are_one_line_and_leave_no_file(brokers: str, line: str, snapshot_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "plan.json"
    arguments = ["--snapshot", str(snapshot_file), "--brokers", brokers, "-o", str(output)]
    result = CliRunner().invoke(plan, ["remove-brokers", *arguments])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", line)
    assert list(tmp_path.iterdir()) == [snapshot_file]


def test_the_command_does_not_import_pyspark() -> None:
    code = "import sys, controller.cli.plan; print([m for m in sys.modules if m.startswith(('pyspark', 'py4j'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
