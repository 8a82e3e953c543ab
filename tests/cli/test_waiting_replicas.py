"""The words of `klamm topic describe` about replicas that wait until an earlier topic of their name is deleted."""

from __future__ import annotations

from klamm.cli.waiting_replicas import failed_rows, notes_of
from transport.messages import BrokerEndpoint, FailedReplica, MetadataResponse, PartitionState, WaitingReplica
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition


def test_each_broker_that_has_to_delete_first_is_named() -> None:
    waiting = (WaitingReplica("orders", 0, 2), WaitingReplica("orders", 1, 2), WaitingReplica("orders", 1, 3))
    brokers = tuple(BrokerEndpoint(id_, "host", 9092) for id_ in (1, 2))
    assert list(notes_of(MetadataResponse(None, 1, brokers, (), waiting=waiting))) == [
        "orders waits for broker 2 to delete 2 logs of an earlier topic of that name",
        "orders waits for broker 3 to come back and delete 1 log of an earlier topic of that name",
    ]
    assert list(notes_of(MetadataResponse(None, 1, brokers, ()))) == []


def test_each_replica_that_failed_is_named_with_the_reason() -> None:
    tp = TopicPartition("orders", 0)
    state = PartitionState.of(tp, "id", ReplicaAssignment((1, 2)), LeaderAndIsr(2, 1, (1, 2), 1, 1))
    failed = (
        FailedReplica("orders", 0, 1, "lead", "RuntimeError: no", 2),
        FailedReplica("orders", 0, 2, "follow", "KAFKA_STORAGE_ERROR", 1),
        FailedReplica("others", 0, 1, "lead", "of a topic that is not shown", 1),
    )
    found = MetadataResponse(None, 1, (), (state,), failed=failed)
    assert list(notes_of(found)) == [
        "orders-0: broker 1 failed to lead 2 times: RuntimeError: no",
        "orders-0: broker 2 failed to follow once: KAFKA_STORAGE_ERROR",
    ]
    assert [one.broker_id for one in failed_rows(found, tp)] == [1, 2]
