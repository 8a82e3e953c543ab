"""`klamm top` as a command: on a terminal, on a pipe, once, and while the cluster does not answer."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
import trio
import yaml

from klamm.cli.demo.task_cluster import task_cluster
from klamm.cli.formats import schema_of
from klamm.cli.top import top
from klamm.cli.top.document import TopLook
from tests.cli.shell import Shell, bootstrap_of, register_deaf_broker, run_klamm
from tests.cli.terminal import CTRL_C, PATIENCE_SECONDS, on_terminal

NOBODY = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "0.5")


async def test_once_prints_all_tables_that_have_rows(
    klamm: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2,2:3")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 2]}]}))
    said = await klamm("top", str(plan), "--once")
    lines = said.splitlines()
    assert lines[0].startswith(f"{klamm.bootstrap}, controller 1")
    assert lines[1:3] == ["6 brokers, 2 partitions, nothing at risk", "nothing moves"]
    assert [line for line in lines if line in {"Brokers", "Moves", "At risk", "Rollouts"}] == ["Brokers", "Rollouts"]
    assert [(line.split()[0], *line.split()[2:4]) for line in lines[7:13]] == [(b, "-", "live") for b in "123456"]
    assert lines[-1].split() == [str(plan), "not", "begun", *"--------"]


async def test_a_move_in_flight_is_shown(tmp_path: Path) -> None:
    async with task_cluster(tmp_path) as cluster:
        klamm = Shell(await bootstrap_of(cluster.store))
        await klamm("topic", "create", "orders", "--replica-assignment", "1:2")
        await register_deaf_broker(cluster.store, 9)
        file = tmp_path / "plan.json"
        file.write_text(
            json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [9, 2]}]})
        )
        await klamm("reassignment", "execute", "--reassignment-json-file", str(file), "--no-wait")
        lines = (await klamm("top", "--once")).splitlines()
    assert lines[2].startswith("1 move in flight")
    [row] = [line.split() for line in lines if line.startswith("orders-0")]
    assert row[:3] == ["orders-0", "1", "9"]


async def test_once_is_a_document_for_programs(tmp_path: Path) -> None:
    async with task_cluster(tmp_path) as cluster:
        klamm = Shell(await bootstrap_of(cluster.store))
        await klamm("topic", "create", "orders", "--replica-assignment", "1:2")
        await register_deaf_broker(cluster.store, 9)
        file = tmp_path / "plan.json"
        file.write_text(
            json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [9, 2]}]})
        )
        await klamm("reassignment", "execute", "--reassignment-json-file", str(file), "--no-wait")
        told = await klamm("top", str(file), "--once", "-o", "json")
        same = yaml.safe_load(await klamm("top", "--once", "-o", "yaml"))
        bare = await klamm("top", "--once", "--no-headers")
    look = msgspec.json.decode(told, type=TopLook, strict=True)
    assert look.at.utcoffset() == timedelta(0)
    assert (look.controller, look.counts.partitions, look.counts.being_reassigned) == (1001, 1, 1)
    assert [(broker.id, broker.moves_in, broker.moves_out) for broker in look.brokers if broker.id in {1, 9}] == [
        (1, 0, 1),
        (9, 1, 0),
    ]
    [move] = look.moves
    assert (move.topic, move.adding_replicas, move.removing_replicas) == ("orders", (9,), (1,))
    assert [(one.rollout, one.state, one.fault) for one in look.rollouts] == [(str(file), None, "not begun")]
    assert set(same) == set(json.loads(told)) == set(schema_of(top)["$defs"]["TopLook"]["properties"])
    assert "leaders" not in bare


@pytest.mark.parametrize("form", ["json", "yaml", "wide"])
async def test_a_screen_has_no_other_format(form: str) -> None:
    done = await run_klamm("top", "-o", form, *NOBODY)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.splitlines()[-1] == f"Error: -o {form} is for one look: add --once".encode()


@pytest.mark.parametrize("options", [(), ("--interval", "5")])
async def test_a_pipe_is_no_place_for_a_screen(options: tuple[str, ...]) -> None:
    done = await run_klamm("top", *options, *NOBODY)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"Error: stdout is not a terminal: print one look with --once\n"


async def test_a_cluster_that_cannot_be_reached_is_one_line_and_no_screen() -> None:
    with on_terminal("top", *NOBODY) as terminal:
        code = await trio.to_thread.run_sync(terminal.end)
    assert (code, terminal.screen.count(b"\n")) == (1, 1)
    assert terminal.screen.startswith(b"Error: cannot connect to 127.0.0.1:1: nothing listens there")


async def test_a_terminal_has_a_screen_that_ends_without_a_trace(klamm: Shell) -> None:
    with on_terminal("top", "--bootstrap-server", klamm.bootstrap) as terminal:
        await trio.to_thread.run_sync(terminal.read_until, b"127.0.0.1")
        await trio.to_thread.run_sync(terminal.read_until, b"look now")
        terminal.press(b"q")
        code = await trio.to_thread.run_sync(terminal.end)
    assert code == 0
    # The alternate screen is opened, and closed again.
    assert terminal.screen.count(b"\x1b[?1049h") == terminal.screen.count(b"\x1b[?1049l") == 1
    assert terminal.screen.count(b"\x1b[?1000h") == 0, "the mouse stays the terminal's, which marks and copies with it"


async def test_the_screen_is_on_stdout(klamm: Shell, tmp_path: Path) -> None:
    messages = tmp_path / "messages"
    with (
        messages.open("wb") as file,
        on_terminal("top", "--bootstrap-server", klamm.bootstrap, stderr=file) as terminal,
        trio.fail_after(PATIENCE_SECONDS),
    ):
        await trio.to_thread.run_sync(terminal.read_until, b"look now", abandon_on_cancel=True)
        terminal.press(b"q")
        code = await trio.to_thread.run_sync(terminal.end, abandon_on_cancel=True)
    assert (code, messages.read_bytes()) == (0, b"")


async def test_the_screen_shows_what_changes(tmp_path: Path) -> None:
    async with task_cluster(tmp_path) as cluster:
        bootstrap = await bootstrap_of(cluster.store)
        klamm = Shell(bootstrap)
        with on_terminal("top", "--bootstrap-server", bootstrap, "--interval", "0.2") as terminal:
            await trio.to_thread.run_sync(terminal.read_until, b"0 partitions")
            await klamm("topic", "create", "orders", "--replica-assignment", "1:2")
            await trio.to_thread.run_sync(terminal.read_until, b"1 partition ")
            terminal.press(CTRL_C)
            code = await trio.to_thread.run_sync(terminal.end)
    assert code in {0, 130}


async def test_a_terminal_that_prints_only_lines_gets_lines(klamm: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with on_terminal("top", "--bootstrap-server", klamm.bootstrap, "--interval", "0.2") as terminal:
        await trio.to_thread.run_sync(terminal.read_until, b"nothing at risk")
        terminal.screen = b""
        await trio.to_thread.run_sync(terminal.read_until, b"nothing at risk")
        terminal.press(CTRL_C)
        code = await trio.to_thread.run_sync(terminal.end)
    assert code == 130
    assert b"\x1b" not in terminal.screen
