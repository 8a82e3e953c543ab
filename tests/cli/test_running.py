"""Services that end on signals, and their last actions."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from klamm.cli.running import run, until_stopped
from klamm.interrupts import INTERRUPTED
from transport.errors import ApiError, ErrorCode, in_words, reason_of

CLI = Path(__file__).parents[2] / "klamm" / "cli"


@pytest.fixture(autouse=True)
def pythons_own_handler() -> Iterator[None]:
    """Handle Ctrl-C as a new process does: PySpark has a handler of its own, which stays when tests of it have run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


async def ended_by(*signals: signal.Signals, leaving: trio.Event) -> list[str]:
    """Send signals to a service that leaves when `leaving` is set; return what was done until it ended."""
    done = []

    async def leave() -> None:
        done.append("leaves")
        await leaving.wait()
        done.append("has left")

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_stopped, nursery.cancel_scope, leave)
            for signal_ in signals:
                await wait_all_tasks_blocked(0.01)
                os.kill(os.getpid(), signal_)
            await trio.Event().wait()
    return done


@pytest.mark.requirement("D6")
async def test_a_service_leaves_in_good_order_at_the_first_signal() -> None:
    leaving = trio.Event()
    leaving.set()
    assert await ended_by(signal.SIGTERM, leaving=leaving) == ["leaves", "has left"]


@pytest.mark.requirement("D6")
def test_a_service_that_ctrl_c_ends_has_its_exit_code() -> None:
    done = []

    async def leave() -> None:
        await trio.lowlevel.checkpoint()
        done.append("has left")

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_stopped, nursery.cancel_scope, leave)
            await wait_all_tasks_blocked(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            await trio.sleep_forever()

    with pytest.raises(SystemExit) as ended:
        run(serve)
    assert (ended.value.code, done) == (INTERRUPTED, ["has left"])


async def test_a_second_signal_ends_it_at_once() -> None:
    assert await ended_by(signal.SIGTERM, signal.SIGTERM, leaving=trio.Event()) == ["leaves"]


def test_ctrl_c_waits_for_a_place_where_work_waits() -> None:
    done = []

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)  # as if between the lines that open a cancel scope
        done.append("what was begun")
        await trio.lowlevel.checkpoint()
        done.append("what follows")

    with pytest.raises(SystemExit) as ended:
        run(work)
    assert ended.value.code == INTERRUPTED
    assert done == ["what was begun"]


# --- errors in words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_has_words(code: ErrorCode) -> None:
    words = reason_of(code)
    assert words
    assert words != code.name
    assert reason_of(code, "no") == "no"
    assert in_words(ApiError(code)) == words
    assert in_words(ApiError(code, "try later")) == f"{words}: try later"


def test_a_command_ends_with_words_and_not_with_a_code() -> None:
    async def refused() -> None:
        await trio.lowlevel.checkpoint()
        raise ApiError(ErrorCode.NOT_CONTROLLER)

    with pytest.raises(click.ClickException, match=r"^the node is not the controller any more$"):
        run(refused)


def test_no_command_prints_the_name_of_a_code_instead_of_a_text() -> None:
    fallback = re.compile(r"message or [\w.]+\.name\b")
    assert [path.name for path in CLI.rglob("*.py") if fallback.search(path.read_text(encoding="utf-8"))] == []
