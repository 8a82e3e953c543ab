"""Topics, settings and ids of producers, while a path is closed that the controller writes."""

from __future__ import annotations

from typing import Final

from controller.events import PartitionModifications, TopicChange, TopicDeletion
from controller.handlers.config_changes import EXPIRY_MS, config_change
from tests.controller import deletions
from tests.controller.closed.sweeps import OTHER, Errors, Scenario, deleted_on, is_led, obey, one_topic
from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    NewPartitions,
    NewTopic,
)
from transport.messages.users import AlterScramUsersRequest, AlterScramUsersResponse, UserChanges
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set
from transport.store.scram_users import user_path

NEW: Final = TopicPartition("new", 0)
BLOCKS: Final = (0, 1_000)
MIN_ISR: Final = 2

# --- ids of producers -------------------------------------------------------------------------------------------


async def _blocks(bench: Bench) -> tuple[int, ...]:
    """Let two brokers ask for ids; return the first of each block."""
    starts = []
    for broker_id in (1, 2):
        request = AllocateProducerIdsRequest(broker_id, bench.context.brokers[broker_id].epoch)
        starts.append((await bench.ask(request, AllocateProducerIdsResponse)).start)
    return tuple(starts)


async def asks_for_ids(bench: Bench) -> Errors:
    assert await _blocks(bench) == BLOCKS
    return ()


async def no_block_is_given_again(bench: Bench) -> bool:
    return min(await _blocks(bench)) > max(BLOCKS)


# --- topics that come -------------------------------------------------------------------------------------------


async def creates_a_topic(bench: Bench) -> Errors:
    answer = await bench.ask(CreateTopicsRequest((NewTopic("new", 1, 1, ((1, 2),)),)), CreateTopicsResponse)
    await bench.handle(TopicChange())
    return [topic.error for topic in answer.topics]


async def the_new_topic_is_led(bench: Bench) -> bool:
    return is_led(bench, NEW)


async def _write_new(bench: Bench, topic_id: str | None) -> None:
    data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((1, 2))}, topic_id))
    await bench.store.multi([Create(paths.topic("new"), data)])


async def a_topic_by_hand(bench: Bench) -> None:
    await one_topic(bench)
    await _write_new(bench, None)


async def sees_topics(bench: Bench) -> Errors:
    await bench.handle(TopicChange())
    return ()


async def the_new_topic_has_an_id(bench: Bench) -> bool:
    znode = await bench.znode(paths.topic("new"))
    return is_led(bench, NEW) and formats.decode_topic("new", znode.data).topic_id is not None


async def a_topic_with_an_earlier_marker(bench: Bench) -> None:
    await one_topic(bench)
    await bench.store.multi([Create(paths.delete_topic("new"))])
    await _write_new(bench, "id-of-new")


async def sees_topics_and_markers(bench: Bench) -> Errors:
    await bench.handle(TopicChange())
    await bench.handle(TopicDeletion())
    return ()


async def the_new_topic_is_not_deleted(bench: Bench) -> None:
    assert "new" not in bench.context.deletions


# --- topics that change -----------------------------------------------------------------------------------------


async def adds_partitions(bench: Bench) -> Errors:
    answer = await bench.ask(CreatePartitionsRequest((NewPartitions("orders", 2),)), CreatePartitionsResponse)
    return [topic.error for topic in answer.topics]


async def a_rewritten_topic(bench: Bench) -> None:
    await one_topic(bench)
    partitions = {0: ReplicaAssignment((1, 2, 3)), 1: ReplicaAssignment((2, 1))}
    data = formats.encode_topic(formats.TopicZnode(partitions, None))
    await bench.store.multi([Set(paths.topic("orders"), data, -1)])


async def sees_the_topic(bench: Bench) -> Errors:
    await bench.handle(PartitionModifications("orders"))
    return ()


async def both_are_led(bench: Bench) -> bool:
    return is_led(bench, TP) and is_led(bench, OTHER)


# --- topics that go ---------------------------------------------------------------------------------------------


async def deletes_a_topic(bench: Bench) -> Errors:
    answer = await bench.ask(DeleteTopicsRequest(("orders",)), DeleteTopicsResponse)
    await bench.handle(TopicDeletion())
    await obey(bench)
    return [topic.error for topic in answer.topics]


async def the_topic_is_gone(bench: Bench) -> bool:
    return await bench.read(paths.topic("orders")) is None and await bench.read(paths.delete_topic("orders")) is None


async def a_removed_topic(bench: Bench) -> None:
    await one_topic(bench)
    await bench.delete_topic("orders", 1)


async def a_removed_topic_with_a_marker(bench: Bench) -> None:
    await one_topic(bench)
    await deletions.mark(bench, "orders")
    await bench.delete_topic("orders", 1)


async def sees_the_removal(bench: Bench) -> Errors:
    await bench.handle(TopicChange())
    assert deleted_on(bench) == {1, 2, 3}
    await obey(bench)
    return ()


async def nothing_is_left(bench: Bench) -> bool:
    is_marked = await bench.read(paths.delete_topic("orders")) is not None
    return await deletions.strays(bench) == [] and deletions.leaves_no_trace(bench) and not is_marked


# --- settings ---------------------------------------------------------------------------------------------------


async def alters_settings(bench: Bench) -> Errors:
    altered = AlterableConfig("min.insync.replicas", ConfigOperation.SET, str(MIN_ISR))
    resource = AlterConfigsResource(ConfigResource(ConfigResourceType.TOPIC, "orders"), (altered,))
    answer = await bench.ask(IncrementalAlterConfigsRequest((resource,)), IncrementalAlterConfigsResponse)
    return [one.error for one in answer.resources]


async def they_are_altered(bench: Bench) -> bool:
    return bench.context.min_isr("orders") == MIN_ISR


async def adds_a_user(bench: Bench) -> Errors:
    request = AlterScramUsersRequest((UserChanges("ann", (), (("SCRAM-SHA-256", "a"),)),))
    answer = await bench.ask(request, AlterScramUsersResponse)
    return [ErrorCode.NONE if fault is None else fault[0] for _, fault in answer.users]


async def the_user_is_known(bench: Bench) -> bool:
    return await bench.read(user_path("ann")) is not None


async def an_old_notification(bench: Bench) -> None:
    await one_topic(bench)
    await bench.store.multi([Create(f"{paths.CONFIG_CHANGES}/config_change_0000000000", b"{}")])


async def purges(bench: Bench) -> Errors:
    await bench.run(config_change(bench.context, 2 * EXPIRY_MS))
    return ()


async def it_is_purged(bench: Bench) -> bool:
    await purges(bench)
    return await bench.store.children([paths.CONFIG_CHANGES]) == [[]]


SCENARIOS: Final = {
    "producer ids": Scenario(one_topic, asks_for_ids, no_block_is_given_again),
    "a topic is created": Scenario(one_topic, creates_a_topic, the_new_topic_is_led),
    "a topic comes": Scenario(a_topic_by_hand, sees_topics, the_new_topic_has_an_id),
    "a marker is older": Scenario(
        a_topic_with_an_earlier_marker, sees_topics_and_markers, the_new_topic_is_led, the_new_topic_is_not_deleted
    ),
    "a topic grows": Scenario(one_topic, adds_partitions, both_are_led),
    "a topic is rewritten": Scenario(a_rewritten_topic, sees_the_topic, both_are_led),
    "a topic is deleted": Scenario(one_topic, deletes_a_topic, the_topic_is_gone),
    "a topic is removed": Scenario(a_removed_topic, sees_the_removal, nothing_is_left),
    "a marked topic is removed": Scenario(a_removed_topic_with_a_marker, sees_the_removal, nothing_is_left),
    "settings": Scenario(one_topic, alters_settings, they_are_altered),
    "users": Scenario(one_topic, adds_a_user, the_user_is_known),
    "old notifications": Scenario(an_old_notification, purges, it_is_purged),
}
