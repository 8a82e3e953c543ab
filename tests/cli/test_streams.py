"""Streams that commands print to: full devices, closed streams, and pipes without a reader."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import trio

from klamm.interrupts import INTERRUPTED
from tests.cli.shell import Shell, without_cluster

KLAMM = (sys.executable, "-m", "klamm")

SNAPSHOT = """{"brokers": [{"id": 1, "host": "a", "port": 1, "rack": null},
{"id": 2, "host": "a", "port": 1, "rack": null}],
"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "leader": 1, "isr": [1],
"adding_replicas": [], "removing_replicas": []}]}"""

FULL = "Error: stdout: No space left on device\n"
CLOSED = "Error: stdout: Bad file descriptor\n"


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """Make a device like /dev/full, which a command run by root may damage without harm."""
    if os.geteuid() != 0:
        return Path("/dev/full")
    device = tmp_path / "full"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    return device


def redirected(redirections: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with redirections as a shell understands them; gives what is printed elsewhere."""
    shell = ["bash", "-c", f'exec "$@" {redirections}', "bash", *KLAMM, *arguments]
    return subprocess.run(shell, capture_output=True, text=True, timeout=60, check=False)


def into_closed_pipe(*arguments: str) -> tuple[int, bytes]:
    """Run a command whose reader is gone already; return its exit code and what is on stderr."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([*KLAMM, *arguments], stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(write)
    return done.returncode, done.stderr


COMMANDS = {
    "help": ("--help",),
    "version": ("--version",),
    "help of a command": ("topic", "create", "--help"),
    "a document": ("simulate", "--seed", "1", "-o", "json"),
    "a table": ("simulate", "--seed", "1"),
    "a plan's moves": ("plan", "remove-brokers", "--snapshot", "snapshot.json", "--brokers", "1"),
    "a plan's summary": (
        *("plan", "remove-brokers", "--snapshot", "snapshot.json", "--brokers", "1"),
        *("-o", "json", "--out", "plan"),
    ),
}
"""Commands that print, each in another way, and need no cluster."""

PLAN = COMMANDS["a plan's moves"]


def each_in_the_soak(*always: str) -> pytest.MarkDecorator:
    """Parametrize with commands: some always, all of them in the soak; the playbook of mistakes has more of them."""
    rows = [
        pytest.param(words, id=name, marks=() if name in always else pytest.mark.soak)
        for name, words in COMMANDS.items()
    ]
    return pytest.mark.parametrize("command", rows)


@pytest.fixture(autouse=True)
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in a folder with a snapshot."""
    (tmp_path / "snapshot.json").write_text(SNAPSHOT)
    monkeypatch.chdir(tmp_path)


@each_in_the_soak("help")
def test_a_full_device_is_told_in_one_line(command: Sequence[str], full: Path) -> None:
    done = redirected(f"> {full}", *command)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (1, [FULL.strip()]), done.stderr
    assert "Traceback" not in done.stderr


@each_in_the_soak("help")
def test_a_closed_stdout_is_told_in_one_line(command: Sequence[str]) -> None:
    done = redirected(">&-", *command)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (1, [CLOSED.strip()]), done.stderr
    assert "Traceback" not in done.stderr


@each_in_the_soak("a document")
def test_a_pipe_that_nobody_reads_is_a_quiet_end(command: Sequence[str]) -> None:
    code, said = into_closed_pipe(*command)
    assert code == 0, said
    assert b"Error" not in said
    assert b"Traceback" not in said
    assert b"Exception" not in said


@pytest.mark.parametrize("stderr", [pytest.param("2>&-", marks=pytest.mark.soak), "2> {full}"])
def test_messages_that_cannot_be_written_stop_nothing(stderr: str, full: Path) -> None:
    redirection = stderr.format(full=full)
    help_ = redirected(redirection, "--help")
    assert (help_.returncode, "Usage: " in help_.stdout) == (0, True)
    done = redirected(redirection, *PLAN)
    assert (done.returncode, '"replicas":[2]' in done.stdout) == (0, True)
    mistake = redirected(redirection, "topic", "list", "--zookeeper", "127.0.0.1:1", "--timeout", "0.1")
    assert (mistake.returncode, mistake.stdout) == (1, "")


def test_messages_into_a_closed_pipe_stop_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*KLAMM, *PLAN], stdout=subprocess.PIPE, stderr=write, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, b'"replicas":[2]' in done.stdout) == (0, True)


@each_in_the_soak("version")
def test_all_streams_closed(command: Sequence[str]) -> None:
    assert redirected("<&- >&- 2>&-", *command).returncode == 1


def test_a_plan_needs_no_stream_to_write_its_moves_into_a_file() -> None:
    assert redirected("<&- >&- 2>&-", *PLAN, "--out", "moves.json").returncode == 0
    assert '"replicas":[2]' in Path("moves.json").read_text()


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.soak)])
def test_a_terminal_that_knows_few_characters(encoding: str) -> None:
    shell = [*KLAMM, "simulate", "--seed", "1"]
    done = subprocess.run(
        shell, capture_output=True, timeout=60, check=False, env={**os.environ, "PYTHONIOENCODING": encoding}
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


# --- with a cluster ---------------------------------------------------------------------------------------------


ANSWERED = (
    ("consume", "t"),
    ("topic", "describe", "t", "-o", "json"),
    ("broker", "list"),
    ("topic", "list"),
    ("topic", "describe", "t", "-o", "yaml"),
    ("reassignment", "list"),
    ("reassignment", "list", "-o", "json"),
    ("cluster", "describe"),
    ("config", "describe", "--entity-type", "topics", "--entity-name", "t"),
    ("leader", "elect", "--election-type", "preferred", "--all-topic-partitions"),
)


@pytest.mark.parametrize("commands", [ANSWERED[:1], pytest.param(ANSWERED, marks=pytest.mark.soak)], ids=["few", "all"])
async def test_the_rules_hold_for_what_a_cluster_answers(
    commands: Sequence[Sequence[str]], klamm: Shell, full: Path
) -> None:
    await klamm("topic", "create", "t", "--replica-assignment", "1:2:3")
    await klamm("produce", "t", stdin=b"record\n" * 1000)
    bootstrap = ("--bootstrap-server", klamm.bootstrap)
    for command in commands:
        closed = await trio.to_thread.run_sync(partial(into_closed_pipe, *command, *bootstrap))
        assert closed == (0, b""), command
        done = await trio.to_thread.run_sync(partial(redirected, f"> {full}", *command, *bootstrap))
        assert (done.returncode, done.stderr) == (1, FULL), command
        done = await trio.to_thread.run_sync(partial(redirected, ">&-", *command, *bootstrap))
        assert (done.returncode, done.stderr) == (1, CLOSED), command


async def test_nothing_is_moved_if_the_way_back_cannot_be_told(klamm: Shell, tmp_path: Path, full: Path) -> None:
    await klamm("topic", "create", "t", "--replica-assignment", "1:2:3")
    moves = tmp_path / "moves.json"
    moves.write_text('{"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}')
    command = ("reassignment", "execute", "--reassignment-json-file", str(moves), "--bootstrap-server", klamm.bootstrap)
    done = await trio.to_thread.run_sync(lambda: redirected(f"> {full}", *command))
    nothing = "nothing was begun, because the rollback could not be written: "
    assert (done.returncode, without_cluster(done.stderr)) == (1, FULL.replace("Error: ", f"Error: {nothing}"))
    code, said = await trio.to_thread.run_sync(lambda: into_closed_pipe(*command))
    assert (code, without_cluster(said.decode())) == (1, f"Error: {nothing}stdout: Broken pipe\n")
    assert "no reassignment is in progress" in await klamm("reassignment", "list")
    assert "1,2,3" in await klamm("topic", "describe", "t")


# --- services ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where", ["full", *(pytest.param(where, marks=pytest.mark.soak) for where in ("closed", "pipe"))]
)
async def test_a_service_runs_though_nobody_hears_it(where: str, zookeeper: str, tmp_path: Path, full: Path) -> None:
    """Its output and its log are lost, and it still serves."""
    redirection = {"full": f"> {full} 2> {full}", "closed": ">&- 2>&-", "pipe": "> >(true) 2> >(true)"}[where]
    store = ("--zookeeper", f"{zookeeper}/unheard-{where}")
    services = [
        ("controller", "run", "--id", "1001", "--log-level", "debug", *store),
        ("broker", "run", "--id", "1", "--port", "0", "--log-dir", str(tmp_path / "1"), *store),
    ]
    running = []
    try:
        for service in services:
            shell = ["bash", "-c", f'exec "$@" {redirection}', "bash", *KLAMM, *service]
            running.append(await trio.lowlevel.open_process(shell))
        create = [*KLAMM, "topic", "create", "t", *store]
        with trio.fail_after(60):
            while (await trio.run_process(create, capture_stdout=True, capture_stderr=True, check=False)).returncode:
                assert [process.returncode for process in running] == [None, None]
        for process in reversed(running):
            process.send_signal(signal.SIGINT)
            assert await process.wait() == INTERRUPTED
    finally:
        for process in running:
            if process.returncode is None:
                process.kill()
            await process.wait()
