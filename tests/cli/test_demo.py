"""The demo in one process, as a user runs it."""

from __future__ import annotations

import pytest

from tests.kit.demo import check, run_demo


@pytest.mark.soak  # CI runs it by `make demo STORE=memory`, too
@pytest.mark.requirement("A2", "A4", "A5", "A6", "A7")
def test_the_demo_in_one_process() -> None:
    check(run_demo("--store", "memory"))


@pytest.mark.requirement("A8")
def test_the_demo_in_one_process_survives_the_death_of_a_controller() -> None:
    printed = run_demo("--store", "memory", "--kill-controller")
    assert "controller 1001 was killed" in printed or "controller 1002 was killed" in printed
    check(printed)
