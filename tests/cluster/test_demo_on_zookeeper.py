"""The demo on ZooKeeper, as a user runs it: the six rows of a move whose controller is killed."""

from __future__ import annotations

import pytest

from tests.kit.demo import check, run_demo


@pytest.mark.soak  # CI runs it by `make demo ARGS=--kill-controller`, too
@pytest.mark.requirement("A7", "A8", "D1", "E2", "E3")
def test_the_demo_on_zookeeper_survives_the_death_of_a_controller(zookeeper: str) -> None:
    assert zookeeper, "the demo starts one of its own: this one tells that Java is there"
    printed = run_demo("--kill-controller")
    assert "was killed after U1" in printed
    assert "moved by the plan: invoices" in printed
    check(printed)
