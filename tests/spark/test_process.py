"""`python -m spark_bridge`, the process that plans."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_bridge.__main__ import main
from spark_bridge.java import java_problem
from spark_bridge.plan import Plan, PlanRequest, Reassignment

pytestmark = pytest.mark.requirement("E3")


def fake_java(folder: Path, version: str) -> None:
    """Put a java there that knows its version and nothing else."""
    java = folder / "java"
    java.write_text(f'#!/bin/sh\ntest "$1" = -version && echo \'openjdk version "{version}"\' >&2\n')
    java.chmod(0o700)


@pytest.mark.usefixtures("java")
def test_reads_stdin_writes_the_plan_and_says_nothing(snapshot_file: Path, tmp_path: Path) -> None:
    request, scratch, output = PlanRequest(str(snapshot_file), (3,)), tmp_path / "scratch", tmp_path / "plan.json"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "spark_bridge", str(output)],
        input=request.to_json(),
        capture_output=True,
        check=False,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    plan = Plan.from_json(output.read_bytes())
    assert plan.partitions == (Reassignment("orders", 1, (2, 1)), Reassignment("orders", 2, (1, 4)))
    assert json.loads(plan.reassignment_json()) == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 1, "replicas": [2, 1]},
            {"topic": "orders", "partition": 2, "replicas": [1, 4]},
        ],
    }
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("brokers", "line"),
    [
        ((9,), "broker 9 is not in the snapshot: choose from 1, 2, 3, 4\n"),
        ((1, 2, 3, 4), "removing 1, 2, 3, 4 leaves no live broker: name fewer brokers or start others first\n"),
        (
            (2, 3, 4),
            (
                "orders-0 has 2 replicas, and without 2, 3, 4 only 1 of the brokers can hold one: "
                "start 1 more, remove fewer, or lower its replication factor to 1\n"
            ),
        ),
    ],
)
def test_refuses_in_one_line_before_spark_starts(
    brokers: tuple[int, ...],
    line: str,
    snapshot_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", "")
    request, output = tmp_path / "request.json", tmp_path / "plan.json"
    request.write_bytes(PlanRequest(str(snapshot_file), brokers).to_json())
    assert main([str(output), str(request)]) == 1
    assert capfd.readouterr() == ("", line)
    assert not output.exists()


def test_without_pyspark_it_says_how_to_install_it(
    snapshot_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    request = tmp_path / "request.json"
    request.write_bytes(PlanRequest(str(snapshot_file), (3,)).to_json())
    assert main([str(tmp_path / "plan.json"), str(request)]) == 1
    assert capfd.readouterr() == ("", "planning needs Spark: pip install 'klamm[spark]'\n")


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    cure = "install Java 17 or later (Debian: openjdk-17-jre-headless) and have it in PATH or JAVA_HOME"
    assert java_problem() == f"planning needs Java, and there is none in PATH: {cure}"
    fake_java(tmp_path, "1.8.0_392")
    assert java_problem() == f"planning needs Java 17 or later, and {tmp_path}/java is 8: {cure}"
    fake_java(tmp_path, "17.0.15")
    assert java_problem() is None
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert java_problem() == f"planning needs Java, and there is none in JAVA_HOME=/nowhere: {cure}"


@pytest.mark.usefixtures("java")
def test_when_spark_does_not_start_it_says_so_in_one_line(snapshot_file: Path, tmp_path: Path) -> None:
    fake_java(tmp_path, "17.0.15")
    done = subprocess.run(
        [sys.executable, "-m", "spark_bridge", str(tmp_path / "plan.json")],
        input=PlanRequest(str(snapshot_file), (3,)).to_json(),
        capture_output=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"Spark failed: [JAVA_GATEWAY_EXITED] ")
    assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "plan.json").exists()


def test_a_wrong_call_shows_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err == "usage: python -m spark_bridge PLAN [REQUEST]\n"
