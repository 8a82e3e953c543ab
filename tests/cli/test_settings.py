"""The settings of a service at its start: `klamm.toml`, flags, and the page about them."""

from __future__ import annotations

from pathlib import Path

import attrs
import click
import pytest
from attrs import AttrsInstance
from click.testing import CliRunner

from klamm.cli.services import broker, controller
from klamm.cli.settings import SECTIONS, given, read_file
from tests.house import settings_page
from transport.settings import settings_of

FILE = """
[controller]
"controller.id" = 1001
"zookeeper.session.timeout.ms" = 6000
unclean.leader.election.enable = true

[broker]
broker = {id = 1, rack = "r1"}
log.dir = "/data"
zookeeper.connect = "zk:2181/klamm"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "klamm.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_names_are_kafkas_quoted_or_as_nested_tables(file: Path) -> None:
    assert read_file(file, "controller") == {
        "controller_id": 1001,
        "zookeeper_session_timeout_ms": 6000,
        "unclean_leader_election_enable": True,
    }
    assert read_file(file, "broker") == {
        "broker_id": 1,
        "rack": "r1",
        "log_dir": "/data",
        "zookeeper_connect": "zk:2181/klamm",
    }


def test_flags_win_over_the_file(file: Path) -> None:
    flags = {"zookeeper_session_timeout_ms": 9000, "unclean_leader_election_enable": False, "port": None}
    values = given("controller", file, flags)
    assert values == {
        "controller_id": 1001,
        "zookeeper_session_timeout_ms": 9000,
        "unclean_leader_election_enable": False,
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[controller]\nzookeeper.sesion.timeout.ms = 6000", "did you mean zookeeper.session.timeout.ms?"),
        ('[controller]\n"zookeeper.session.timeout.ms" = "6000"', "must be an integer from 1, is '6000'"),
        ("[controller]\nzookeeper.session.timeout.ms = 0", "must be an integer from 1, is 0"),
        ("[controller]\nport = 65536", "port must be an integer from 0 to 65535, is 65536"),
        ("[controller]\nport = true", "port must be an integer from 0 to 65535, is True"),
        ("[controller]\nunclean.leader.election.enable = 1", "must be true or false, is 1"),
        ("[controller]\nhost = []", "host must be a string, is []"),
        ('[controller]\nhost = ""', "host must be a string, is ''"),
        ('[controller]\nrequest.timeout.ms = 1\n"request.timeout.ms" = 2', "request.timeout.ms is given twice"),
        ("[broker]\nbroker.idd = 1", "did you mean broker.id?"),
        ("[brokers]\nbroker.id = 1", "there is no table [brokers]: did you mean broker?"),
        ("port = 1", "there is no table [port]"),
        ("[controller", "not TOML"),
    ],
)
def test_what_is_not_valid_is_refused_in_one_line_with_the_file_and_the_key(
    tmp_path: Path, text: str, fault: str
) -> None:
    path = tmp_path / "klamm.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(click.ClickException) as refused:
        read_file(path, "controller")
    message = refused.value.format_message()
    assert message.startswith(f"{path}: ")
    assert fault in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("in_file", "flags", "counts"),
    [
        (("log.dir",), (), {"log_dir": "/f"}),
        (("log.dir", "log.dirs"), (), {"log_dir": "/f", "log_dirs": "/f"}),  # log.dirs: BrokerConfig.directories
        (("log.dirs",), ("log_dir",), {"log_dir": "/flag"}),
        (("log.dir",), ("log_dirs",), {"log_dirs": "/flag"}),
        (("log.dir", "log.dirs"), ("log_dir",), {"log_dir": "/flag"}),
    ],
)
def test_a_flag_for_directories_wins_over_both_names_in_the_file(
    tmp_path: Path, in_file: tuple[str, ...], flags: tuple[str, ...], counts: dict[str, str]
) -> None:
    path = tmp_path / "klamm.toml"
    lines = ["[broker]", '"broker.id" = 1', *(f'"{name}" = "/f"' for name in in_file)]
    path.write_text("\n".join(lines))
    assert given("broker", path, dict.fromkeys(flags, "/flag")) == {"broker_id": 1, **counts}


def test_both_flags_for_directories_are_refused() -> None:
    done = CliRunner().invoke(broker, ["run", "--id", "1", "--log-dir", "/a", "--log-dirs", "/b"])
    assert done.exit_code == 2
    assert done.output.endswith("Error: use either --log-dir or --log-dirs, not both\n")


def test_nothing_starts_with_a_file_that_is_not_valid(tmp_path: Path) -> None:
    path = tmp_path / "klamm.toml"
    path.write_text("[broker]\nmin.insync.replica = 2", encoding="utf-8")
    for command in (controller, broker):
        done = CliRunner().invoke(command, ["run", "--id", "1", "--config", str(path)])
        assert done.exit_code == 1
        cure = "there is no setting min.insync.replica: did you mean min.insync.replicas?"
        assert done.output == f"Error: {path}: [broker]: {cure}\n"


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (("--id", "1", "--config", "nowhere.toml"), "nowhere.toml: No such file or directory"),
        ((), "give the controller an id with --id, or with controller.id in the file of --config"),
        (("--id", "-1"), "controller.id must be an integer from 0, is -1"),
        (("--id", "1", "--request-timeout-ms", "soon"), "request.timeout.ms must be an integer from 1, is 'soon'"),
        (("--id", "1", "--request-timeout", "1"), "No such option '--request-timeout'"),
    ],
)
def test_flags_that_are_not_valid_are_refused(arguments: tuple[str, ...], cure: str) -> None:
    done = CliRunner().invoke(controller, ["run", *arguments])
    assert done.exit_code != 0
    assert cure in done.output


@pytest.mark.parametrize("config", SECTIONS.values())
def test_every_setting_says_what_it_is_and_has_a_valid_default(config: type[AttrsInstance]) -> None:
    assert {field.name for field in attrs.fields(config)} == settings_of(config).keys()
    for setting in settings_of(config).values():
        assert setting.doc.endswith(".")
        assert setting.default is None or setting.check(setting.default) == setting.default


def test_the_page_says_what_the_code_says() -> None:
    page = settings_page.PAGE.read_text(encoding="utf-8")
    assert settings_page.filled(page) == page
    assert settings_page.filled(page.replace("| `controller.id` | an integer", "| `controller.id` | a string")) == page
