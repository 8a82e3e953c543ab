"""The rules by which a simulated broker of Kafka's takes orders."""

from __future__ import annotations

import pytest

from simulator.kafka.rules import Known, judge_leader_and_isr, judge_request, judge_stop_replica
from transport.errors import ErrorCode
from transport.messages import PartitionState

STATE = PartitionState("orders", "an-id", 0, 3, 1, 5, (1, 2), 9, (1, 2))
OK, STALE = ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH


@pytest.mark.parametrize(
    ("broker_epoch", "controller_epoch", "verdict"),
    [
        (20, 3, OK),
        (21, 4, OK),
        (-1, 3, OK),
        (19, 3, ErrorCode.STALE_BROKER_EPOCH),
        (20, 2, STALE),
    ],
)
def test_a_request_is_fenced_by_both_epochs(broker_epoch: int, controller_epoch: int, verdict: ErrorCode) -> None:
    assert judge_request(broker_epoch, controller_epoch, own_epoch=20, known_epoch=3) is verdict


@pytest.mark.parametrize(
    ("known", "log_id", "broker_id", "verdict"),
    [
        (None, "", 1, OK),
        (None, "an-id", 2, OK),
        (Known("an-id", 4, 9), "an-id", 1, OK),
        (Known("an-id", 5, 8), "an-id", 1, STALE),
        (Known("an-id", 6, 8), "an-id", 1, STALE),
        (Known("an-id", 4, 9), "an-id", 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, "another", 1, ErrorCode.INCONSISTENT_TOPIC_ID),
        (Known("another", 6, 8), "", 1, ErrorCode.INCONSISTENT_TOPIC_ID),
    ],
)
def test_a_replica_takes_only_newer_leader_epochs(
    known: Known | None, log_id: str, broker_id: int, verdict: ErrorCode
) -> None:
    assert judge_leader_and_isr(known, STATE, log_id, broker_id) is verdict


@pytest.mark.parametrize("takes_equal", [True, False])
def test_what_stops_a_replica(takes_equal: bool) -> None:
    known = Known("an-id", 5, 9)
    verdicts = {epoch: judge_stop_replica(known, epoch, takes_equal=takes_equal) is OK for epoch in (-2, -1, 4, 5, 6)}
    assert verdicts == {-2: True, -1: True, 4: False, 5: takes_equal, 6: True}
    assert judge_stop_replica(None, 0, takes_equal=takes_equal) is OK
