"""The progress that `klamm topic delete` reports."""

from __future__ import annotations

import pytest
import trio
from msgspec.structs import replace

from klamm.cli.output import partition_json
from klamm.cli.topic_deletion import until_gone, waits_for
from klamm.cli.topics import TopicRow, topic_rows, topics_table
from transport.messages import BrokerEndpoint, MetadataResponse, PartitionState
from transport.metadata import LEADER_DURING_DELETE


def deleting(topic: str, *offline: int) -> PartitionState:
    return PartitionState(topic, "id", 0, 1, LEADER_DURING_DELETE, 0, (), 0, (1, 2, 3), offline_replicas=offline)


@pytest.mark.requirement("D8")
def test_dead_brokers_before_those_that_fail() -> None:
    assert waits_for([deleting("orders")], [1, 2, 3]) == ""
    dead = waits_for([deleting("orders", 2, 3), deleting("orders", 3, 1)], [1])
    assert dead == "orders waits for brokers 2, 3 to come back and delete its replicas"
    failing = waits_for([deleting("orders"), deleting("payments", 2)], [1, 2, 3])
    text = "payments waits for broker 2 to delete replicas: this failed and is retried, see the broker's log"
    assert failing == text


class ReturningBroker:
    """A cluster in which broker 3 is away when asked first, and has come back and deleted its data when asked again."""

    def __init__(self) -> None:
        self.asked = 0

    async def read(self) -> MetadataResponse:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        is_away = self.asked == 1
        brokers = tuple(BrokerEndpoint(id_, "host", 9092) for id_ in ((1, 2) if is_away else (1, 2, 3)))
        return MetadataResponse(None, 1, brokers, (deleting("orders", 3),) if is_away else ())


@pytest.mark.usefixtures("autojump_clock")
async def test_a_broker_that_comes_back_has_not_failed(capsys: pytest.CaptureFixture[str]) -> None:
    await until_gone(ReturningBroker().read)
    assert capsys.readouterr().err == "orders waits for broker 3 to come back and delete its replicas\n"


def test_a_topic_that_is_being_deleted_shows_as_that() -> None:
    assert partition_json(deleting("orders"))["partition_state"] == "NonExistentPartition"
    rows = topic_rows([deleting("orders"), replace(deleting("more"), leader=1), deleting("orders")])
    assert rows == [
        TopicRow("more", 1, 3, marked_for_deletion=False),
        TopicRow("orders", 2, 3, marked_for_deletion=True),
    ]
    assert topics_table(rows).rows == [("more", 1, 3), ("orders - marked for deletion", 2, 3)]
