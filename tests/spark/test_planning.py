"""The controller's door to the planning process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import trio

from controller.admin.removal_planning import PlanError, PlanRequest, compute_plan

pytestmark = pytest.mark.requirement("E3")


def pretend_python(path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the planning process run a shell script."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(path))


async def test_a_refusal_comes_as_its_one_line(snapshot_file: Path) -> None:
    with pytest.raises(PlanError, match=r"^broker 9 is not in the snapshot: choose from 1, 2, 3, 4$"):
        await compute_plan(PlanRequest(str(snapshot_file), (9,)))


async def test_a_silent_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_python(tmp_path / "python", "exit 3", monkeypatch)
    with pytest.raises(PlanError, match=r"^planning ended with code 3 and said nothing$"):
        await compute_plan(PlanRequest("s.json", (1,)))


async def test_of_a_traceback_the_last_line_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_python(tmp_path / "python", "printf 'Traceback:\\n  ...\\nValueError: odd\\n' >&2; exit 1", monkeypatch)
    with pytest.raises(PlanError, match=r"^ValueError: odd$"):
        await compute_plan(PlanRequest("s.json", (1,)))


async def test_cancelling_kills_the_process_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both processes hold the pipe open: it ends when both are dead.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pretend_python(tmp_path / "python", f"exec 3>{pipe}; sleep 1000 & echo $TMPDIR >&3; wait", monkeypatch)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(compute_plan, PlanRequest("s.json", (1,)))
        opened = await trio.to_thread.run_sync(pipe.open, abandon_on_cancel=True)
        with opened:
            scratch = trio.Path((await trio.to_thread.run_sync(opened.readline)).strip())
            assert await scratch.is_dir()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                assert await trio.to_thread.run_sync(opened.read) == ""
    assert not await scratch.exists()
