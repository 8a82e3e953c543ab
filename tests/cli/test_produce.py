"""`klamm produce`: each line becomes a record as soon as it arrives, whatever its source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click
import pytest
import trio

from broker.client import Consumer
from klamm.cli.running import parse_addresses
from klamm.cli.standard_input import BATCH, Lines
from klamm.interrupts import INTERRUPTED
from tests.cli.shell import Shell, without_cluster
from tests.cli.terminal import CTRL_C, CTRL_D, on_terminal
from transport.host import Host
from transport.network import TcpNetwork

PRODUCE = (sys.executable, "-m", "klamm", "produce", "lines", "--bootstrap-server")


@pytest.fixture
async def shell(klamm: Shell) -> Shell:
    await klamm("topic", "create", "lines", "--replica-assignment", "1:2:3")
    return klamm


async def records(shell: Shell, count: int) -> list[bytes]:
    """Return what is there, once so many are."""
    addresses = parse_addresses(shell.bootstrap)
    async with Consumer(TcpNetwork(), addresses, host=Host()) as consumer:
        return await consumer.read_all("lines", 0, up_to=count)


async def ended(process: trio.Process) -> tuple[int, bytes]:
    assert process.stderr is not None
    said = b"".join([part async for part in process.stderr])
    return await process.wait(), without_cluster(said.decode()).encode()


@asynccontextmanager
async def producing(shell: Shell) -> AsyncIterator[tuple[trio.Process, trio.abc.SendStream]]:
    """Run the command on a pipe until the block ends; gives our end, too."""
    command = ["env", "--default-signal=INT", *PRODUCE, shell.bootstrap]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    try:
        yield process, process.stdin
    finally:
        process.kill()
        await process.wait()


async def test_a_line_on_a_pipe_is_sent_though_more_may_follow(shell: Shell) -> None:
    async with producing(shell) as (process, pipe):
        await pipe.send_all(b"first\nsec")
        assert await records(shell, 1) == [b"first"]
        await pipe.send_all(b"ond\n\nlast")
        assert await records(shell, 3) == [b"first", b"second", b""]
        await pipe.aclose()
        assert await ended(process) == (0, b"4 records acknowledged\n")
    assert await records(shell, 4) == [b"first", b"second", b"", b"last"]


async def test_ctrl_c_while_a_pipe_is_silent(shell: Shell) -> None:
    async with producing(shell) as (process, pipe):
        await pipe.send_all(b"first\n")
        assert await records(shell, 1) == [b"first"]
        process.send_signal(signal.SIGINT)
        assert await ended(process) == (INTERRUPTED, b"")


@pytest.mark.parametrize(
    ("key", "code", "said"), [(CTRL_C, INTERRUPTED, b"^C"), (CTRL_D, 0, b"1 records acknowledged")]
)
async def test_a_line_on_a_terminal_and_the_end(shell: Shell, key: bytes, code: int, said: bytes) -> None:
    with on_terminal("produce", "lines", "--bootstrap-server", shell.bootstrap) as terminal:
        terminal.press(b"typed\n")
        assert await records(shell, 1) == [b"typed"]
        terminal.press(key)
        assert await trio.to_thread.run_sync(terminal.end) == code
    assert said in terminal.screen
    assert b"Traceback" not in terminal.screen


async def test_files_and_nothing_at_all(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b"%d\n" % number for number in range(3 * BATCH)))
    for path, count in ((file, 3 * BATCH), (Path("/dev/null"), 0)):
        with path.open("rb") as stdin:
            done = await trio.run_process([*PRODUCE, shell.bootstrap], stdin=stdin, capture_stderr=True)
        assert without_cluster(done.stderr.decode()) == f"{count} records acknowledged\n"
    assert await records(shell, 3 * BATCH) == [b"%d" % number for number in range(3 * BATCH)]
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *PRODUCE, shell.bootstrap]
    done = await trio.run_process(closed, capture_stderr=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"Error: standard input is closed: there is nothing to write\n")


async def test_a_line_without_end_is_refused_where_no_record_can_be_as_long() -> None:
    ours, theirs = os.pipe()
    try:
        lines = Lines(ours, max_line_bytes=9)
        os.write(theirs, b"nine bytes"[:9] + b"\n" + 10 * b"x")
        assert await lines.take() == [b"nine byte"]
        with (
            trio.fail_after(5),
            pytest.raises(click.ClickException, match="line 2 has more than 9 bytes: it and later lines were not"),
        ):
            await lines.take()
    finally:
        os.close(ours)
        os.close(theirs)
