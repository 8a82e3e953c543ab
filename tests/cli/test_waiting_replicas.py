"""The words of `klamm topic describe` about replicas that wait until an earlier topic of their name is deleted."""

from __future__ import annotations

import pytest

from klamm.cli.waiting_replicas import tell_waiting
from transport.messages import BrokerEndpoint, MetadataResponse, WaitingReplica


def test_each_broker_that_has_to_delete_first_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = (WaitingReplica("orders", 0, 2), WaitingReplica("orders", 1, 2), WaitingReplica("orders", 1, 3))
    brokers = tuple(BrokerEndpoint(id_, "host", 9092) for id_ in (1, 2))
    tell_waiting(MetadataResponse(None, 1, brokers, (), waiting=waiting))
    assert capsys.readouterr().err.splitlines() == [
        "orders waits for broker 2 to delete 2 logs of an earlier topic of that name",
        "orders waits for broker 3 to come back and delete 1 log of an earlier topic of that name",
    ]
    tell_waiting(MetadataResponse(None, 1, brokers, ()))
    assert capsys.readouterr().err == ""
