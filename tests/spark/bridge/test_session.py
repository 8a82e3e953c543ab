"""The settings of a session, by where it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from spark_bridge.process.session import classic_settings

HERE = ("local[*]", "local-cluster[2,1,1024]", "spark://127.0.0.1:7077", "spark://localhost:7077")
ELSEWHERE = ("spark://host:7077", "yarn", "k8s://https://host:6443", "spark://h1:7077,h2:7077")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back afterwards what a session settles in the environment."""
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP", "SPARK_LAUNCHER_OPTS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize("master", HERE)
def test_what_runs_on_this_machine_keeps_to_loopback_and_to_this_python(master: str, tmp_path: Path) -> None:
    settings = classic_settings(tmp_path, master, {})
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.parametrize("master", ELSEWHERE)
def test_a_cluster_reaches_the_driver_by_its_name_and_has_a_python_of_its_own(master: str, tmp_path: Path) -> None:
    assert "spark.driver.host" not in classic_settings(tmp_path, master, {})
    assert "PYSPARK_PYTHON" not in os.environ


def test_what_the_user_settled_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = {"spark.driver.memory": "16g", "spark.driver.extraJavaOptions": "-Dmine=1", "spark.driver.host": "host"}
    settings = classic_settings(tmp_path, "local[2]", conf)
    assert settings["spark.driver.memory"] == "16g"
    assert settings["spark.driver.host"] == "host"
    assert settings["spark.driver.extraJavaOptions"].split()[0] == f"-Djava.io.tmpdir={tmp_path}"
    assert settings["spark.driver.extraJavaOptions"].split()[-1] == "-Dmine=1"
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    classic_settings(tmp_path, "local[2]", {})
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"
    classic_settings(tmp_path, "yarn", {"spark.pyspark.python": "/their/python"})
    assert os.environ["PYSPARK_PYTHON"] == "/their/python"
