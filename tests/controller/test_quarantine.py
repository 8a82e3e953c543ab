"""Subjects that make the controller fail are set aside after the third time in a minute."""

from __future__ import annotations

from controller.node.quarantine import CAPACITY, Quarantine


def test_the_third_fault_within_a_minute_sets_aside() -> None:
    quarantine = Quarantine()
    assert [quarantine.fault("orders", now) for now in (0, 30, 60)] == [False, False, True]
    assert "orders" in quarantine
    assert "invoices" not in quarantine
    assert len(quarantine) == 1


def test_faults_that_are_far_apart_do_not() -> None:
    quarantine = Quarantine()
    assert not any(quarantine.fault("orders", now) for now in (0, 30, 61, 91.5, 122))
    assert "orders" not in quarantine


def test_what_is_remembered_is_bounded() -> None:
    quarantine = Quarantine()
    for subject in range(2 * CAPACITY):
        for _ in range(3):
            quarantine.fault(subject, 0)
    assert len(quarantine) == CAPACITY
    assert 2 * CAPACITY - 1 in quarantine
    assert 0 not in quarantine
