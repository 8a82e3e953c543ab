"""The progress of a rollout: lines on a pipe, a bar on a terminal."""

from __future__ import annotations

import io
import re

import pytest
from attrs import evolve
from rich.console import Console

from klamm.cli.rollout.showing import Display, Progress

PROGRESS = Progress(
    "running", 801, 3204, 10, 1_100_000_000_000, 93_100_000.0, 11820.0, 0.04, {"broker 4 is not alive": 2, "no room": 1}
)
LINE = "801 of 3,204 done, 10 in flight, 1.1 TB left, 93.1 MB/s, 3 h 17 min left (so far within 4%)"


def test_a_line_has_what_is_known() -> None:
    assert PROGRESS.line == LINE
    early = evolve(PROGRESS, rate=None, seconds=None, error=None)
    assert early.line == "801 of 3,204 done, 10 in flight, 1.1 TB left"
    assert evolve(early, brake="broker 3 died").line.startswith("paused, broker 3 died: 801 of 3,204 done")


async def test_a_pipe_gets_lines_and_what_is_waited_for_if_nothing_is_in_flight(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = Display(Console(file=io.StringIO()))
    with display.running():
        assert display.show(PROGRESS)
        assert not display.show(evolve(PROGRESS, done=900))
    assert capsys.readouterr().err == f"{LINE}\n"
    Display(Console(file=io.StringIO())).show(evolve(PROGRESS, in_flight=0))
    assert capsys.readouterr().err.endswith("2 wait: broker 4 is not alive\n1 waits: no room\n")


async def test_a_terminal_of_80_columns_shows_a_bar_and_keeps_what_was_said() -> None:
    screen = io.StringIO()
    display = Display(Console(file=screen, force_terminal=True, width=80, color_system=None))
    with display.running():
        display.show(PROGRESS)
        display.say("orders-1: refused for now: [why]")
    shown = re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "", screen.getvalue())
    assert "801/3,204 ━━━" in shown
    assert "2 wait: broker 4 is not alive" in shown
    assert "orders-1: refused for now: [why]\n" in shown
    assert max(map(len, shown.splitlines())) <= 80
