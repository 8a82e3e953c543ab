"""Machines that lack something: one line with the cure, before or instead of a plan."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from controller.admin.planning import PlanError, compute_plan
from spark_bridge.__main__ import main
from spark_bridge.process.opener import Opener, java_problem
from spark_bridge.process.request import EngineName
from tests.spark.bridge.conftest import Asking


def fake_java(folder: Path, version: str) -> None:
    """Put a java there that knows its version and nothing else."""
    java = folder / "java"
    java.write_text(f'#!/bin/sh\ntest "$1" = -version && echo \'openjdk version "{version}"\' >&2\n')
    java.chmod(0o700)


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


def test_without_pyspark_it_says_how_to_install_it(
    ask: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(PlanError, match=r"^planning needs Spark: pip install 'klamm\[spark\]'$"):
        Opener(tmp_path, print).open(ask("count", EngineName.SPARK))


@pytest.mark.usefixtures("java", "stub")
async def test_when_spark_does_not_start_it_says_so(
    ask: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, "17.0.15")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(PlanError) as failed:
        await compute_plan(ask("count", EngineName.SPARK))
    assert str(failed.value).startswith("Spark failed: [JAVA_GATEWAY_EXITED] ")
    assert "\n" not in str(failed.value)


def test_a_wrong_call_shows_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err == "usage: python -m spark_bridge FOLDER\n"


def test_workers_need_nothing_that_they_lack() -> None:
    others = ("click", "ijson", "jinja2", "msgpack", "orjson", "rich", "structlog", "trio", "yaml")
    worker = (
        f"import sys\nsys.modules.update(dict.fromkeys({others}))\n"  # whose import fails then
        "import spark_bridge.engines.spark, spark_bridge.inputs.dealing, spark_bridge.planning"
    )
    done = subprocess.run([sys.executable, "-c", worker], capture_output=True, text=True, check=False)
    assert done.stderr == ""
