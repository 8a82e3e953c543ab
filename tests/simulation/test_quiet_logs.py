"""While the product's log is dropped, what must not happen is reported."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from controller.model.context import ControllerContext
from controller.model.facts import ReplicasMoved
from controller.model.state_machines import ReplicaPhase
from simulator.quiet_logs import quiet_logs
from transport.log import get_logger
from transport.messages import BrokerEndpoint
from transport.metadata import TopicPartition


def test_a_transition_that_may_not_be_is_a_fault_and_other_errors_are_not() -> None:
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), epoch=1, epoch_version=1)
    faults: list[str] = []
    with quiet_logs(faults.append):
        context.apply(ReplicasMoved.on(2, [TopicPartition("orders", 0)], ReplicaPhase.ONLINE))
        get_logger(__name__).error("a broker came back without its data", broker=2)
    assert faults == [
        "illegal replica transition: partition=orders-0 broker=2 before=NonExistentReplica to=OnlineReplica"
    ]


def test_a_log_is_dropped_however_the_program_has_configured_it() -> None:
    log = get_logger(__name__)
    with capture_logs() as entries:
        with quiet_logs(pytest.fail):
            log.warning("trying again")
        log.warning("a request failed")
    assert [entry["event"] for entry in entries] == ["a request failed"]
