"""The files in packaging/, and the commands of docs/deployment.md: what they name exists."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import click
import pytest

from broker.config import BrokerConfig
from controller.config import ControllerConfig
from klamm.cli import main
from klamm.cli.settings import given
from tests.deployment.page import PACKAGING, PAGE

UNITS: Final = sorted((PACKAGING / "systemd").glob("*.service"))
CONTAINER: Final = (PACKAGING / "container" / "Containerfile").read_text(encoding="utf-8")
_WORDS: Final = re.compile(
    r"^(?: *\$ |ExecStart=)(?:.*[ /])?klamm ((?:--version|\w+ (?:run|\w+)).*?)(?: > \S+)?$", re.MULTILINE
)
COMMANDS: Final = [words for text in (PAGE, *(unit.read_text() for unit in UNITS)) for words in _WORDS.findall(text)]


def test_both_services_take_the_settings_of_the_first_host() -> None:
    controller = ControllerConfig(**given("controller", PACKAGING / "klamm.toml", {}))
    broker = BrokerConfig(**given("broker", PACKAGING / "klamm.toml", {}))
    assert controller.zookeeper_connect == broker.zookeeper_connect
    assert controller.controller_id != broker.broker_id
    assert broker.min_insync_replicas == 2
    for port in (controller.port, broker.port, controller.metrics_port):
        assert re.search(rf"^\|.*\b{port}\b", PAGE, re.MULTILINE), port


@pytest.mark.parametrize("unit", UNITS, ids=[unit.stem for unit in UNITS])
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    # What is run is on the hosts alone. The units name each other, so all are there.
    for one in UNITS:
        (tmp_path / one.name).write_text(re.sub(r"/opt/\S+/bin/\S+", sys.executable, one.read_text()))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / unit.name)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_has_these_words_and_options(line: str) -> None:
    words = shlex.split(line)
    command: click.Command = main
    while isinstance(command, click.Group) and words[0] != "--version":
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, line
        command = found
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options


def test_commands_of_the_page_and_the_units_are_found() -> None:
    assert {line.split()[0] for line in COMMANDS} >= {
        "--version",
        "controller",
        "broker",
        "topic",
        "state",
        "zookeeper",
    }
    assert len(COMMANDS) >= 11


def test_all_files_are_on_the_page_and_all_links_lead_to_one() -> None:
    linked = set(re.findall(r"\]\(\.\./packaging/([^)]+)\)", PAGE))
    assert linked == {str(path.relative_to(PACKAGING)) for path in PACKAGING.rglob("*") if path.is_file()}


def test_the_image_runs_what_the_page_installs() -> None:
    assert 'ENTRYPOINT ["/opt/klamm/bin/klamm"]' in CONTAINER
    [copied] = re.findall(r"^COPY (\S+) /tmp/$", CONTAINER, re.MULTILINE)
    assert copied.startswith("dist/")
    assert "--wheel-dir dist" in PAGE
    assert "--file source/packaging/container/Containerfile ." in PAGE


def test_a_backup_has_snapshots_before_the_log_and_replaces_the_one_before_when_complete(tmp_path: Path) -> None:
    data, to = tmp_path / "zookeeper", tmp_path / "backup.tar"
    (data / "version-2").mkdir(parents=True)
    for name in ("log.1", "log.9", "snapshot.0", "snapshot.8", "currentEpoch"):
        (data / "version-2" / name).write_text(name)
    back_up = [str(PACKAGING / "backup-zookeeper"), str(data), str(to)]
    subprocess.run(back_up, check=True)
    listed = subprocess.run(["tar", "-tf", str(to)], capture_output=True, text=True, check=True).stdout.split()
    assert listed == ["snapshot.0", "snapshot.8", "log.1", "log.9"]
    for path in (data / "version-2").glob("log.*"):
        path.unlink()
    assert subprocess.run(back_up, capture_output=True, check=False).returncode != 0
    listed = subprocess.run(["tar", "-tf", str(to)], capture_output=True, text=True, check=True).stdout.split()
    assert len(listed) == 4
