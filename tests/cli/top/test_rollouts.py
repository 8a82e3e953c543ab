"""Rollouts from outside, as `klamm top` follows them by their plans."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from klamm.cli.top.rollouts import Untold, followed, seen

PLAN = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN))
    return path


def test_a_plan_that_nobody_carries_out_has_not_begun(plan: Path) -> None:
    assert seen(followed([plan])) == (Untold(str(plan), "not begun"),)


def test_files_that_cannot_be_read_any_more_say_why(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    views = followed([plan])
    monkeypatch.setattr(Path, "stat", _denied)
    assert seen(views) == (Untold(str(plan), f"{plan}: Permission denied"),)


def test_a_journal_that_cannot_be_read_says_why(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    views = followed([plan])
    seen(views)
    monkeypatch.setattr(Path, "open", _denied)
    monkeypatch.setattr(Path, "exists", _denied)
    assert seen(views) == (Untold(str(plan), f"{plan}.rollout.jsonl: Permission denied"),)


def _denied(path: Path, *_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
