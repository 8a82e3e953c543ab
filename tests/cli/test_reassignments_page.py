"""docs/reassignments.md: its sessions, one after the other, print the shown output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio
from attrs import frozen

from controller.admin.client import AdminClient
from klamm.cli.demo.task_cluster import task_cluster
from tests.cli.shell import bootstrap_of, forks, register_deaf_broker, run_klamm
from transport.messages import NewTopic
from transport.network import TcpNetwork

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reassignments.md").read_text(encoding="utf-8")
SESSIONS = [
    session for block in re.findall(r"^```\n(\$ .*?)```", PAGE, re.DOTALL | re.MULTILINE)
    for session in re.findall(r"^\$ (.*?)\n(.*?)(?=^\$ |\Z)", block, re.DOTALL | re.MULTILINE)
]  # fmt: skip
INTERRUPT = "^C\n"
NEWS = re.compile(r"cluster (\S+ )?at |\S+ (waits for|stalled) |\d of \d partitions moved|rate|left|stalled since|─")
VARYING = [
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(, .* ago)?", "TIME"),
    (r"unknown|[\d.]+ (bytes|kB)", "SIZE"),
    (r"(broker 9)\b.*", r"\1"),
    (r"^(\d +(yes|no) ).*", r"\1"),
    (r"^(orders  \d          \d       )\d+", r"\1EPOCH"),
]


@frozen
class PageTerminal:
    """The terminal in which the page's commands are typed."""

    directory: Path
    bootstrap: str

    async def type(self, command: str, *, interrupts: bool = False) -> str:
        """Run a command; press Ctrl-C if that is wished once a move is known to get nothing."""
        name, *arguments = command.split()
        assert name == "klamm"
        arguments += ["--bootstrap-server", self.bootstrap]
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        if not interrupts:
            run = partial(forks().run, arguments, cwd=self.directory, text=b"", environment=environment)
            done = await trio.to_thread.run_sync(run)
            return done.stdout + done.stderr
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "klamm", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            env=environment | {"PYTHONPATH": str(ROOT)},
        )
        assert process.stdout is not None
        printed = b""
        async for part in process.stdout:
            if b"stalled" in part and b"stalled" not in printed:
                process.send_signal(signal.SIGINT)
            printed += part
        await process.wait()
        return printed.decode()


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[PageTerminal]:
    # A check soon after the controller's election would give orders-1 back to its preferred leader, or just miss it.
    async with task_cluster(tmp_path / "cluster", auto_leader_rebalance_enable=False) as cluster:
        admin = AdminClient(TcpNetwork(), (), cluster.store, 30)
        terminal = PageTerminal(tmp_path, await bootstrap_of(cluster.store))
        await admin.create_topics([NewTopic("orders", 3, 3, ((1, 2, 3), (2, 3, 1), (3, 1, 2)))])
        for partition in range(3):
            command = ("produce", "orders", "--partition", str(partition), "--bootstrap-server", terminal.bootstrap)
            assert (await run_klamm(*command, stdin=b"a record of an order\n" * 1000)).returncode == 0
        await register_deaf_broker(cluster.store, 9)
        yield terminal


def settled(text: str) -> list[str]:
    """Leave out the line about the cluster, and what differs from run to run.

    These are times, sizes, epochs, the order of the ISR, and news of waiting.
    """
    kept = [line for line in text.replace(INTERRUPT, "").splitlines() if not NEWS.match(line)]
    for pattern, name in VARYING:
        kept = [re.sub(pattern, name, line) for line in kept]
    return [" ".join("ISR" if sorted(word) == list(",,123") else word for word in line.split()) for line in kept]


@pytest.mark.requirement("A2", "A9", "A11")
async def test_the_page_shows_what_the_commands_print(terminal: PageTerminal) -> None:
    assert len(SESSIONS) > 10
    for command, shown in SESSIONS:
        if command.startswith("cat "):
            await trio.Path(terminal.directory / command.removeprefix("cat ")).write_text(shown)
            continue
        printed = await terminal.type(command, interrupts=INTERRUPT in shown)
        assert settled(printed) == settled(shown), f"$ {command}\n{printed}"
