"""The rules for orders of operators, which the controller and the dry runs of the command share."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.rollout.adapting import FIRST
from controller.rollout.orders import changed, refusal
from controller.rollout.states import Phase, RolloutState
from transport.messages import UNTHROTTLED, RolloutChanges, RolloutOrder, RolloutSettings

BEFORE = RolloutSettings()


@pytest.mark.parametrize(
    ("phase", "order", "text"),
    [
        (Phase.RUNNING, RolloutOrder.REMOVE, "rollout monday is not over but running: abort it first"),
        (Phase.DONE, RolloutOrder.REMOVE, None),
        (Phase.RUNNING, RolloutOrder.PAUSE, None),
        (Phase.DONE, RolloutOrder.ABORT, "rollout monday is done: it cannot abort"),
        (Phase.ABORTING, RolloutOrder.ABORT, None),
        (Phase.DONE, RolloutOrder.UNDO, None),
        (Phase.DONE, RolloutOrder.SET, None),
    ],
)
def test_an_order_is_refused_by_the_state(phase: Phase, order: RolloutOrder, text: str | None) -> None:
    assert refusal("monday", RolloutState(phase), order) == text


def test_a_throttle_that_is_found_has_a_first_rate_in_a_dry_run_too() -> None:
    assert BEFORE.throttle == UNTHROTTLED
    found = changed(BEFORE, RolloutChanges(adapts=True))
    assert found == replace(BEFORE, adapts=True, throttle=FIRST)
    assert changed(found, RolloutChanges(throttle=7)) == replace(BEFORE, throttle=7)
    assert changed(found, RolloutChanges(in_all=3)) == replace(found, in_all=3)
