"""Completion of the command in a shell, with the script that it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import pytest
import trio

from tests.cli.shell import Shell
from tests.kafka.scripted_nodes import scripted_nodes
from transport.zookeeper_server import free_port

KLAMM = Path(sys.executable).with_name("klamm")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("klamm re", ["reassignment"]),
        ("klamm topic list -o y", ["yaml"]),
        ("klamm plan rebalance -o j", ["json"]),
        ("klamm topic cr", ["create"]),
        ("klamm topic delete --boots", ["--bootstrap-server"]),
    ],
)
def test_bash_completes_with_the_script(words: str, expected: list[str]) -> None:
    assert completed(words) == expected


@cache
def script() -> str:
    """Return what the command prints for bash."""
    return subprocess.run([str(KLAMM), "completion", "bash"], capture_output=True, text=True, check=True).stdout


def completed(words: str, **variables: str) -> list[str]:
    """Return what bash proposes for a command that is half written."""
    typed = f"{script()}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); compopt() {{ :; }}\n"
    ask = f'{typed}_klamm_completion "{KLAMM}"; printf "%s\\n" "${{COMPREPLY[@]}}"'
    environment = {**os.environ, **variables}
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""
    return done.stdout.split()


async def test_topics_are_those_of_the_cluster(klamm: Shell) -> None:
    for name in ("orders", "orders-old", "clicks"):
        await klamm("topic", "create", name)
    at = {"KLAMM_BOOTSTRAP_SERVER": klamm.bootstrap}
    for words, variables, expected in (
        (f"klamm topic describe --bootstrap-server {klamm.bootstrap} or", {}, ["orders", "orders-old"]),
        ("klamm topic delete clicks or", at, ["orders", "orders-old"]),
        ("klamm reassignment describe --topic cl", at, ["clicks"]),
        ("klamm produce orders-", at, ["orders-old"]),
        ("klamm topic create or", at, []),
        ("klamm topic delete or", {"KLAMM_BOOTSTRAP_SERVER": f"127.0.0.1:{free_port()}"}, []),
    ):
        found = await trio.to_thread.run_sync(partial(completed, words, **variables))
        assert found == expected, words


async def test_brokers_and_settings_are_those_of_the_cluster(klamm: Shell) -> None:
    at = {"KLAMM_BOOTSTRAP_SERVER": klamm.bootstrap}
    nowhere = {"KLAMM_BOOTSTRAP_SERVER": f"127.0.0.1:{free_port()}"}
    alter = "klamm config alter --entity-type"
    await klamm("topic", "create", "orders")
    for words, variables, expected in (
        ("klamm plan remove-brokers --brokers ''", at, ["1", "2", "3", "4", "5", "6"]),
        ("klamm plan remove-brokers --brokers 4,6,", at, ["4,6,1", "4,6,2", "4,6,3", "4,6,5"]),
        ("klamm plan rebalance --exclude 1,2", at, ["1,2"]),
        ("klamm plan rebalance --snapshot file --exclude 1,2", at, []),
        ("klamm log-dirs describe --broker-list 5", at, ["5"]),
        ("klamm log-dirs describe --broker-list 5", nowhere, []),
        ("klamm config describe --entity-type brokers --entity-name ''", at, ["1", "2", "3", "4", "5", "6"]),
        ("klamm config describe --entity-type topics --entity-name or", at, ["orders"]),
        (f"{alter} topics --entity-name orders --add-config min", at, ["min.insync.replicas="]),
        (f"{alter} topics --entity-name orders --delete-config min", at, ["min.insync.replicas"]),
        (f"{alter} topics --entity-name orders --delete-config min.insync.replicas,unc", at,
         ["min.insync.replicas,unclean.leader.election.enable"]),
        (f"{alter} brokers --entity-default --delete-config unc", at, ["unclean.leader.election.enable"]),
        (f"{alter} brokers --entity-default --delete-config unc", nowhere, ["unclean.leader.election.enable"]),
    ):  # fmt: skip
        found = await trio.to_thread.run_sync(partial(completed, words, **variables))
        assert found == expected, words


def test_profiles_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "klamm").mkdir()
    (tmp_path / "klamm" / "profiles.toml").write_text('[lab]\nbootstrap-server = "h:1"\n[live]\nzookeeper = "h:2"\n')
    assert completed("klamm topic list --profile l", XDG_CONFIG_HOME=str(tmp_path)) == ["lab", "live"]


async def test_topics_of_kafkas_clusters_too() -> None:
    async with scripted_nodes(1) as nodes:
        nodes.show("orders", (1,))
        [(host, port)] = nodes.bootstrap
        words = f"klamm topic describe --bootstrap-server {host}:{port} or"
        assert await trio.to_thread.run_sync(completed, words) == ["orders"]


def test_another_shell_is_refused_with_those_there_are() -> None:
    done = subprocess.run([str(KLAMM), "completion", "csh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'bash', 'zsh', 'fish'" in done.stderr
