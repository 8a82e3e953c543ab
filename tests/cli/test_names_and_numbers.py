"""Names and numbers that cannot be sent are rejected first; misspelt words with the nearest valid one."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from klamm.cli import main
from klamm.cli.names import TOPIC
from tests.cli.shell import Shell

LATIN = os.fsdecode(b"a\xff")
HUGE = "1" + "0" * 22
REPLICAS = ("reassignment", "list")
TOPICS = ("config", "alter", "--entity-type", "topics", "--entity-name", "t", "--add-config")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("topic", "create", LATIN), "is not the name of a topic: it is not UTF-8"),
        (("topic", "delete", "t", LATIN), "is not the name of a topic: it is not UTF-8"),
        (("topic", "describe", LATIN), "is not the name of a topic: it is not UTF-8"),
        (("topic", "add-partitions", LATIN, "--partitions", "2"), "is not the name of a topic: it is not UTF-8"),
        (("produce", LATIN), "is not the name of a topic: it is not UTF-8"),
        (("consume", LATIN), "is not the name of a topic: it is not UTF-8"),
        (("reassignment", "describe", "--topic", LATIN), "is not the name of a topic: it is not UTF-8"),
        (("leader", "elect", "--election-type", "preferred", "--topic", LATIN, "--partition", "0"), "it is not UTF-8"),
        (("config", "describe", "--entity-type", "topics", "--entity-name", LATIN), "is not UTF-8"),
        ((*TOPICS, f"min.insync.replicas={LATIN}"), "is not UTF-8"),
        (("topic", "create", "t", "--config", f"min.insync.replicas={LATIN}"), "is not UTF-8"),
        (("topic", "create", "t", "--partitions", HUGE), f"{HUGE} is too large: the maximum is 2147483647"),
        (("topic", "create", "t", "--partitions", "0"), "0 is not in the range x>=1."),
        (("topic", "create", "t", "--replication-factor", HUGE), "is too large: the maximum is 2147483647"),
        (("topic", "create", "t", "--replica-assignment", f"1:{HUGE}"), "is not a list of broker ids such as 1:2:3"),
        (("topic", "create", "t", "--replica-assignment", "1:-2"), "is not a list of broker ids such as 1:2:3"),
        (("topic", "add-partitions", "t", "--partitions", HUGE), "is too large: the maximum is 2147483647"),
        (("produce", "t", "--partition", HUGE), "is too large: the maximum is 2147483647"),
        (("consume", "t", "--from-offset", HUGE), "is too large: the maximum is 9223372036854775807"),
        (("reassignment", "describe", "--topic", "t", "--partition", HUGE), "is too large: the maximum is 2147483647"),
        (("leader", "elect", "--election-type", "preferred", "--topic", "t", "--partition", HUGE), "is too large"),
        (("leader", "elect", "--election-type", "preferred", "--topic", "t", "--partition", "0", "--replicas", HUGE),
         "name broker ids up to 2147483647, the leader first"),
        (("topics",), "No such command 'topics'. Did you mean 'topic'?"),
        (("brokr", "list"), "No such command 'brokr'. Did you mean 'broker'?"),
        (("topic", "lst"), "Did you mean 'list'?"),
        (("topic", "create", "t", "--partitons", "3"), "Did you mean '--partitions'?"),
        (("xyzzy",), "No such command 'xyzzy'."),
    ],
    ids=range(27),
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(command: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(main, command)
    *_, line = done.stderr.splitlines()
    assert done.exit_code == 2, done.output
    assert line.startswith("Error: ")
    assert said in line


@pytest.mark.parametrize("name", ["t", "ü", "a b", "a" * 249])
def test_other_names_are_for_the_controller_to_judge(name: str) -> None:
    assert TOPIC.convert(name, None, None) == name


def test_a_name_that_is_no_text_is_shown_by_a_real_terminal() -> None:
    command = [os.fsencode(sys.executable), b"-m", b"klamm", b"topic", b"create", b"a\xff"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False), done.stderr
    assert done.stderr.splitlines()[-1].endswith(rb"'a\udcff' is not the name of a topic: it is not UTF-8")


# --- settings ---------------------------------------------------------------------------------------------------


async def test_settings_are_shown_as_they_are_meant(klamm: Shell) -> None:
    """Settings that only `execute` uses are not shown, and "no limit" is not shown as a number."""
    await klamm("topic", "create", "t")
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    ours = "klamm.before.moves.leader.replication.throttled.rate=5"
    await klamm("config", "alter", *broker, "--add-config", f"{ours},follower.replication.throttled.rate=7")
    table = await klamm("config", "describe", *broker)
    assert "klamm." not in table
    assert "9223372036854775807" not in table
    rows = {line.split("  ")[0]: line for line in table.splitlines()}
    assert "no limit" in rows["leader.replication.throttled.rate"]
    assert " 7 " in rows["follower.replication.throttled.rate"]
    values = {row["name"]: row["value"] for row in json.loads(await klamm("config", "describe", *broker, "-o", "json"))}
    assert values["leader.replication.throttled.rate"] is None
    assert values["follower.replication.throttled.rate"] == "7"
    assert not any(name.startswith("klamm.") for name in values)
    for name in ("xyzzy", "klamm", "klamm.moves"):
        said = await klamm("config", "alter", *broker, "--add-config", f"{name}=1", fails=True)
        assert f"there is no setting {name}" in said
        assert "klamm.before" not in said
        assert "klamm.moves.leader" not in said


# --- a terminal that can only print lines -----------------------------------------------------------------------


def on_terminal(kind: str, *arguments: str) -> str:
    """Return what a command prints on stderr, a terminal of a kind."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "klamm", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": kind})
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 1000):
            said += more
    except OSError:  # how a terminal ends
        pass
    os.close(ours)
    assert process.wait(60) == 0, said
    return said.decode()


def test_a_terminal_without_bars_gets_lines(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    replicas = '"isr": [1], "leader": 1, "adding_replicas": [], "removing_replicas": []'
    snapshot.write_text(
        '{"brokers": [{"id": 1, "host": "a", "port": 1, "rack": null}, {"id": 2, "host": "a", "port": 1}],'
        f'"partitions": [{{"topic": "t", "partition": 0, "replicas": [1], {replicas}}}]}}'
    )
    plan = ("plan", "remove-brokers", "--snapshot", str(snapshot), "--brokers", "1")
    first = on_terminal("dumb", *plan).splitlines()[0]
    assert first.startswith("reading")
    assert "\x1b" not in first
    assert "\x1b" in on_terminal("xterm", *plan)
