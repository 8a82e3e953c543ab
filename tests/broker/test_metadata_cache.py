"""A broker's view of the cluster, with and without word of a deletion."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from broker.metadata_cache import MetadataCache
from transport.messages import BrokerEndpoint, MetadataRequest, PartitionState, UpdateMetadataRequest
from transport.metadata import LEADER_DURING_DELETE

CONTROLLER = BrokerEndpoint(101, "127.0.0.1", 1)
STATE = PartitionState("orders", "id-1", 0, 1, 1, 5, (1, 2), 7, (1, 2))
SECOND = replace(STATE, partition=1)
NAMESAKE = replace(STATE, topic_id="id-2", leader_epoch=0, partition_epoch=0)


def cache(*updates: UpdateMetadataRequest) -> list[PartitionState]:
    known = MetadataCache()
    for update in updates:
        known.update(update)
    return list(known.describe(MetadataRequest(None)).partitions)


def told(*states: PartitionState, topics: tuple[tuple[str, str], ...] | None = None) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(101, 1, 0, CONTROLLER, None, states, topics)


def deleted(state: PartitionState) -> PartitionState:
    return replace(state, leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0)


@pytest.mark.requirement("D8")
def test_what_is_deleted_is_forgotten_and_not_its_namesake() -> None:
    assert cache(told(STATE, SECOND), told(deleted(STATE))) == [SECOND]
    assert cache(told(NAMESAKE), told(deleted(STATE))) == [NAMESAKE]


@pytest.mark.requirement("D8")
@pytest.mark.parametrize(
    ("topics", "left"),
    [
        (None, [STATE, SECOND]),
        ((("orders", "id-1"),), [STATE, SECOND]),
        ((("orders", ""),), [STATE, SECOND]),
        ((("orders", "id-2"),), []),
        ((("payments", "id-1"),), []),
        ((), []),
    ],
)
def test_the_list_of_all_topics_makes_up_for_what_was_missed(
    topics: tuple[tuple[str, str], ...] | None, left: list[PartitionState]
) -> None:
    assert cache(told(STATE, SECOND), told(topics=topics)) == left


def test_a_namesake_with_fewer_partitions_leaves_none_behind() -> None:
    assert cache(told(STATE, SECOND), told(NAMESAKE, topics=(("orders", "id-2"),))) == [NAMESAKE]
