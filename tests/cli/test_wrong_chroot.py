"""A chroot without a cluster: every command says so, and creates nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import trio
from click.testing import CliRunner

from klamm.cli import main
from tests.cli.shell import run_klamm
from transport.store import paths
from transport.store.existing import NoCluster, open_existing
from transport.store.protocol import Create, ensure_paths
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

SERVICES = {("controller", "run"), ("broker", "run")}
"""The commands that begin a cluster where there is none."""

ARGUMENTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("state", "dump"): (),
    ("controller", "check"): ("--kafka", "--id", "9001"),
    ("controller", "release"): (),
    ("controller", "take-over"): (),
    ("cluster", "describe"): (),
    ("broker", "list"): (),
    ("log-dirs", "describe"): (),
    ("top",): ("--once",),
    ("topic", "list"): (),
    ("topic", "describe"): ("t",),
    ("topic", "create"): ("t",),
    ("topic", "add-partitions"): ("t", "--partitions", "2"),
    ("topic", "delete"): ("t",),
    ("config", "describe"): ("--entity-type", "topics", "--entity-name", "t"),
    ("config", "alter"): ("--entity-type", "topics", "--entity-name", "t", "--delete-config", "retention.ms"),
    ("leader", "elect"): ("--election-type", "preferred", "--all-topic-partitions"),
    ("reassignment", "list"): (),
    ("reassignment", "describe"): (),
    ("reassignment", "cancel"): ("--all",),
    ("reassignment", "execute"): ("--reassignment-json-file", "move.json"),
    ("reassignment", "verify"): ("--reassignment-json-file", "move.json"),
    ("rollout", "start"): ("move.json",),
    ("rollout", "run"): ("move.json",),
    ("rollout", "list"): (),
    ("rollout", "status"): ("monday",),
    ("rollout", "pause"): ("monday",),
    ("rollout", "resume"): ("monday",),
    ("rollout", "set"): ("monday", "--in-flight", "3"),
    ("rollout", "abort"): ("begun.json",),
    ("rollout", "undo"): ("begun.json",),
    ("rollout", "remove"): ("monday",),
}

IMPATIENT = {("state", "dump"), ("controller", "check")}
"""The commands that have no --timeout."""


def commands(group: click.Group, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)
        else:
            yield (*above, name), command


def test_each_command_that_asks_a_cluster_is_in_the_table() -> None:
    named = {name for name, command in commands(main) if any("--zookeeper" in option.opts for option in command.params)}
    assert named - SERVICES == set(ARGUMENTS)


async def children_of_the_root(zookeeper: str) -> set[str]:
    async with open_zookeeper(zookeeper) as root:
        [names] = await root.children(["/"])
    return set(names or ())


@pytest.mark.parametrize("command", ARGUMENTS, ids=" ".join)
def test_there_is_no_cluster_below_a_wrong_chroot(
    zookeeper: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("move.json", "begun.json"):
        (tmp_path / name).write_text(
            json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]})
        )
    (tmp_path / "begun.json.rollout.jsonl").write_text("")
    patience = () if command in IMPATIENT else ("--timeout", "1")
    where = ("--zookeeper", f"{zookeeper}/kafak")
    done = CliRunner().invoke(main, [*command, *ARGUMENTS[command], *where, *patience])
    assert (done.exit_code, done.stdout) == (1, "")
    line = f"Error: there is no cluster below /kafak at {zookeeper}: it has neither brokers nor controller_epoch"
    assert done.stderr.startswith(line), done.stderr
    assert done.stderr.count("\n") == 1
    assert "kafak" not in trio.run(children_of_the_root, zookeeper)


async def test_the_nearest_chroot_of_a_cluster_is_named(zookeeper: str) -> None:
    async with open_zookeeper(f"{zookeeper}/nearest-prod") as store:
        await ensure_paths(store, [paths.BROKER_IDS])
        done = await run_klamm("state", "dump", "--zookeeper", f"{zookeeper}/nearest-prd")
        assert done.stderr.decode().endswith(": did you mean /nearest-prod?\n")
        done = await run_klamm("state", "dump", "--zookeeper", f"{zookeeper}/far/away")
        assert done.stderr.decode().endswith(": check the chroot of HOST:PORT/CHROOT\n")


async def test_settings_of_brokers_are_no_cluster(zookeeper: str, tmp_path: Path) -> None:
    assert zookeeper, "this one tells that Java is there"
    async with development_zookeeper(tmp_path) as server:
        where = f"{server.host}:{server.port}"
        async with open_zookeeper(where) as root:
            await ensure_paths(root, [paths.BROKER_IDS, paths.BROKER_CONFIGS])
        done = await run_klamm("state", "dump", "--zookeeper", f"{where}/confg")
        assert done.stderr.decode().endswith(": there is one at the root: leave out /confg\n")
        done = await run_klamm("state", "dump", "--zookeeper", f"{where}/config")
        assert done.stderr.decode().endswith(": there is one at the root: leave out /config\n")


@pytest.mark.parametrize("path", [paths.BROKER_IDS, paths.CONTROLLER_EPOCH])
async def test_a_cluster_without_anything_in_it_is_one(zookeeper: str, path: str) -> None:
    chroot = f"/bare{path.replace('/', '-')}"
    async with open_zookeeper(zookeeper + chroot) as store:
        await ensure_paths(store, [path])
        done = await run_klamm("state", "dump", "--zookeeper", zookeeper + chroot)
    assert done.returncode == 0
    assert json.loads(done.stdout)["partitions"] == []


async def test_a_cluster_that_is_just_being_started_is_waited_for(zookeeper: str, nursery: trio.Nursery) -> None:
    where = f"{zookeeper}/young-one"

    async def start() -> None:
        with pytest.raises(NoCluster):
            async with open_existing(where):
                raise AssertionError
        async with open_zookeeper(where) as begun:
            await begun.multi([Create("/brokers"), Create(paths.BROKER_IDS)])

    nursery.start_soon(start)
    async with open_existing(where, patience=60) as store:
        assert await store.children(["/"]) == [["brokers"]]
