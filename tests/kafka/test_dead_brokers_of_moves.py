"""A dead broker that a move waits for is named, whether the move adds it or keeps it, on clusters of Apache Kafka."""

from __future__ import annotations

import pytest

from controller.admin.moves import waits_for
from controller.admin.reassignments import naming_dead
from transport.messages import UNKNOWN, UNTHROTTLED, ReassignmentDescription, ReplicaProgress


@pytest.mark.parametrize(
    ("isr", "live", "words"),
    [
        ((1, 2), {1, 2, 3}, "broker 3 to join the ISR"),
        ((1, 3), {1, 3}, "broker 2, which is not alive"),
        ((1,), {1, 3}, "broker 2, which is not alive; broker 3 to join the ISR"),
        ((1, 2), {1, 2}, "broker 3, which is not alive"),
        ((1, 2, 3), {1, 2, 3}, "the controller to finish it"),
    ],
)
def test_a_dead_broker_is_named(isr: tuple[int, ...], live: set[int], words: str) -> None:
    progress = tuple(ReplicaProgress(broker, in_sync=broker in isr) for broker in (3, 2))
    move = ReassignmentDescription(
        "orders", 0, UNKNOWN, UNKNOWN, 1, UNTHROTTLED, (3, 2, 1), (3,), (1,), isr, (3, 2), progress
    )
    assert waits_for(naming_dead(move, live)) == words
