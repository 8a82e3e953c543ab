"""`klamm rollout status --watch`: a line for each change on a pipe, one place on a terminal, and a clean end."""

from __future__ import annotations

import io
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping

import msgspec
import pytest
import yaml
from attrs import evolve
from rich.console import Console

from controller.rollout.states import HeldBy, MoveState, Phase, RolloutState
from klamm.cli.formats import Format
from klamm.cli.rollout import watching
from klamm.cli.rollout.report import Odd, Report

PROGRESS: Mapping[str, object] = {
    "done": 3,
    "in_flight": 2,
    "bytes_left": 5_000_000,
    "bytes_per_second": 1_000_000,
    "seconds_left": 5,
    "error": 0.04,
    "waits": {"broker 4 is not alive": 2},
    "at": 0,
}
COUNTS = dict.fromkeys(MoveState, 0) | {MoveState.DONE: 3, MoveState.IN_FLIGHT: 2, MoveState.PENDING: 5}
RUNNING = Report("monday", RolloutState(), "", 0, "process 7 on here", COUNTS, PROGRESS)
HELD = evolve(RUNNING, state=RolloutState(holds=frozenset({HeldBy.BRAKE})), brake="broker 3 died")
PAUSED = evolve(RUNNING, state=RolloutState(holds=frozenset({HeldBy.OPERATOR})), brake="paused by operator")
OVER = evolve(
    RUNNING,
    state=RolloutState(Phase.DONE),
    counts=dict.fromkeys(MoveState, 0) | {MoveState.DONE: 9, MoveState.SKIPPED: 1},
    odd=(Odd("orders-1", MoveState.SKIPPED, "has replicas [5], not [1]"),),
)


def looking_at(*reports: Report) -> Callable[[], Awaitable[Report]]:
    seen: Iterator[Report] = iter(reports)

    async def look() -> Report:
        return next(seen)

    return look


async def test_a_pipe_gets_a_line_for_each_change(capsys: pytest.CaptureFixture[str], autojump_clock: object) -> None:
    assert autojump_clock
    await watching.watch(looking_at(RUNNING, RUNNING, HELD, PAUSED, OVER), Format.TABLE)
    how_far = "3 of 10 done, 2 in flight, 5.0 MB left, 1.0 MB/s, 5 s left (so far within 4%)"
    assert capsys.readouterr().out.splitlines() == [
        f"running: {how_far}",
        f"paused by brake, broker 3 died: {how_far}",
        f"paused by operator: {how_far}",
        "done: 9 done, 1 skipped",
    ]


async def test_programs_get_a_document_for_each_change(
    capsys: pytest.CaptureFixture[str], autojump_clock: object
) -> None:
    assert autojump_clock
    await watching.watch(looking_at(RUNNING, RUNNING, OVER), Format.JSON)
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert documents == msgspec.to_builtins([RUNNING.document, OVER.document])
    await watching.watch(looking_at(RUNNING, OVER), Format.YAML)
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == documents


async def test_wide_output_is_the_whole_table_for_each_change(
    capsys: pytest.CaptureFixture[str], autojump_clock: object
) -> None:
    assert autojump_clock
    await watching.watch(looking_at(RUNNING, RUNNING, OVER), Format.WIDE)
    first, second, _ = capsys.readouterr().out.split("\n\n")
    assert first.splitlines()[0].split() == ["rollout", "monday"]
    assert second.splitlines()[2].split() == ["state", "done"]
    await watching.watch(looking_at(OVER), Format.WIDE, headers=False)
    assert capsys.readouterr().out.splitlines()[0].split() == ["state", "done"]


async def test_the_time_of_the_numbers_alone_is_no_change(
    capsys: pytest.CaptureFixture[str], autojump_clock: object
) -> None:
    assert autojump_clock
    later = evolve(RUNNING, progress={**PROGRESS, "at": 5_000})
    await watching.watch(looking_at(RUNNING, later, OVER), Format.JSON)
    first, _ = capsys.readouterr().out.splitlines()
    assert json.loads(first)["progress"]["as_of"] == "1970-01-01T00:00:00Z"


async def test_a_terminal_shows_it_in_one_place(monkeypatch: pytest.MonkeyPatch, autojump_clock: object) -> None:
    assert autojump_clock
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(watching, "Console", lambda: console)
    await watching.watch(looking_at(RUNNING, HELD, OVER), Format.TABLE)
    frames = screen.getvalue().split("\x1b[2K")
    last = frames[-1]
    assert "paused by brake" in screen.getvalue()
    assert "paused by brake" not in last
    assert "9 done, 1 skipped" in last
    assert "orders-1   skipped  has replicas [5], not [1]" in last


async def test_a_terminal_has_heads_and_folds_lines_as_asked(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    assert autojump_clock
    for output, headers in ((Format.TABLE, False), (Format.WIDE, True)):
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=True, width=40, color_system=None)
        monkeypatch.setattr(watching, "Console", lambda console=console: console)
        await watching.watch(looking_at(OVER), output, headers=headers)
        assert ("rollout" in screen.getvalue()) is headers
        assert ("─" * 41 in screen.getvalue().replace("\n", "")) is (output is Format.WIDE)


@pytest.mark.parametrize(("report", "because"), [(HELD, "broker 3 died"), (PAUSED, None), (RUNNING, None)])
def test_a_brake_has_a_reason_beside_the_state(report: Report, because: str | None) -> None:
    assert dict(report.rows).get("because") == because
    assert report.document.brake == because


def test_a_row_counts_the_moves_that_wait_for_something() -> None:
    waits = {"broker 4 is not alive": 2, "broker 5 receives 5 replicas, the most at once": 1}
    rows = dict(evolve(RUNNING, progress={**PROGRESS, "waits": waits}).rows)
    assert (rows["2 wait"], rows["1 waits"]) == tuple(waits)
