"""A bridge whose plans follow instructions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from spark_bridge.inputs.sources import Sources
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.process.request import EngineName, PlanRequest

Asking: TypeAlias = Callable[..., PlanRequest]


def start_instead(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the door start one of the scripts beside this file."""
    monkeypatch.setattr("controller.admin.planning._COMMAND", (str(Path(__file__).parent / script),))


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have the door start the stub, and keep all that it writes below a folder, which is returned."""
    start_instead("stub_bridge.py", monkeypatch)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    return scratch


@pytest.fixture
def ask(tmp_path: Path) -> Asking:
    """Return what makes a request whose plan does as it is told."""

    def asking(what: str, engine: EngineName = EngineName.KERNEL, **options: Any) -> PlanRequest:
        goal = Goal(GoalKind.REBALANCE, topics=(what,))
        return PlanRequest(Sources(Path("snapshot.json")), goal, str(tmp_path), engine, **options)

    return asking
