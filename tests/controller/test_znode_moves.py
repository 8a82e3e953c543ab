"""Moves under Kafka's own controller: requests to it and its progress, in znodes of its format."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from controller.admin.znode_moves import ZnodeMoves, is_led_by_kafka, open_znode_moves
from tests.kit.kafka_controller import KafkaController, dumps, topic_data
from transport.errors import ApiError, ErrorCode
from transport.messages import BrokerEndpoint, OngoingReassignment, ReassignablePartition
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.kafka_office import encode_holder
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, Delete, MetadataStore, Set

ORIGIN, TARGET, BOTH = (1, 2, 3), (4, 5, 6), (4, 5, 6, 1, 2, 3)
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
MOVE = ReassignablePartition(*FIRST, TARGET)


@pytest.fixture
def memory() -> MemoryZooKeeper:
    return MemoryZooKeeper(lambda: 0)


@pytest.fixture(params=[2, 3])
async def kafka(request: pytest.FixtureRequest, memory: MemoryZooKeeper) -> AsyncIterator[KafkaController]:
    async with memory.session() as store:
        controller = KafkaController(store, request.param)
        await controller.start(BOTH, {"0": list(ORIGIN), "1": list(ORIGIN)})
        yield controller


@pytest.fixture
async def moves(kafka: KafkaController) -> AsyncIterator[ZnodeMoves]:
    async with open_znode_moves(kafka.store, 5) as moves:
        yield moves


async def requested(kafka: KafkaController) -> bytes | None:
    [znode] = await kafka.store.read([paths.REASSIGN_PARTITIONS])
    return None if znode is None else znode.data


async def ask(moves: ZnodeMoves, *wanted: ReassignablePartition) -> list[tuple[int, ErrorCode, str]]:
    answer = await moves.alter_partition_reassignments(wanted)
    return [(item.partition, item.error, item.message) for item in answer.partitions]


@pytest.mark.requirement("A1")
async def test_a_request_is_what_kafkas_own_tool_wrote_and_names_what_can_be_done(
    kafka: KafkaController, moves: ZnodeMoves
) -> None:
    done = ReassignablePartition(*SECOND, ORIGIN)
    unknown = ReassignablePartition("orders", 9, TARGET)
    answers = await ask(moves, MOVE, done, unknown)
    assert [(number, error) for number, error, _ in answers] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert await requested(kafka) == b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[4,5,6]}]}'


@pytest.mark.requirement("A3")
@pytest.mark.parametrize(
    ("replicas", "error", "said"),
    {
        "dead": ((4, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "[9], which are not alive"),
        "twice": ((4, 4), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "twice"),
        "empty": ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty"),
        "negative": ((-4,), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "negative"),
        "cancel": (None, ErrorCode.INVALID_REQUEST, "--bootstrap-server"),
    }.values(),
)
async def test_what_kafka_would_not_check_is_refused_with_the_reason(
    kafka: KafkaController, moves: ZnodeMoves, replicas: tuple[int, ...] | None, error: ErrorCode, said: str
) -> None:
    [(_, code, text)] = await ask(moves, ReassignablePartition(*FIRST, replicas))
    assert code is error
    assert said in text
    assert await requested(kafka) is None


async def test_what_is_moved_by_others_or_being_deleted_is_refused(kafka: KafkaController, moves: ZnodeMoves) -> None:
    moving = topic_data(3, {"0": list(BOTH), "1": list(ORIGIN)}, {"0": list(TARGET)}, {"0": list(ORIGIN)})
    await kafka.store.multi([Set(paths.topic("orders"), moving, -1)])
    assert [error for _, error, _ in await ask(moves, MOVE)] == [ErrorCode.REASSIGNMENT_IN_PROGRESS]
    await kafka.store.multi([Create(paths.delete_topic("orders"))])
    second = ReassignablePartition(*SECOND, TARGET)
    assert [error for _, error, _ in await ask(moves, second)] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await requested(kafka) is None


@pytest.mark.requirement("A1")
async def test_kafka_has_one_request_at_a_time(kafka: KafkaController, moves: ZnodeMoves) -> None:
    await ask(moves, MOVE)
    before = await requested(kafka)
    with pytest.raises(ApiError, match="another one is under way") as refused:
        await ask(moves, ReassignablePartition(*SECOND, TARGET))
    assert refused.value.code is ErrorCode.REASSIGNMENT_IN_PROGRESS
    assert await requested(kafka) == before


@pytest.mark.requirement("A11")
async def test_a_request_or_topic_that_zookeeper_has_no_room_for_is_refused(
    kafka: KafkaController, moves: ZnodeMoves
) -> None:
    ids = tuple(range(2_000_000_001, 2_000_000_007))
    for id_ in ids:
        await kafka.store.multi([Create(paths.broker(id_), b"{}", ephemeral=True)])
    origin = {str(number): list(ids[:3]) for number in range(6_000)}
    for name in ("large", "x" * 249):
        await kafka.store.multi([Create(paths.topic(name), topic_data(2, origin, {}, {}))])
    large = [ReassignablePartition("large", number, ids[3:]) for number in range(6_000)]
    answers = await ask(moves, *large)
    assert {error for _, error, _ in answers} == {ErrorCode.INVALID_REQUEST}
    assert "fewer of them at a time" in answers[0][2]
    with pytest.raises(ApiError, match="split it into several"):
        await ask(moves, *(ReassignablePartition("x" * 249, number, ids[3:]) for number in range(4_000)))
    assert await requested(kafka) is None


@pytest.mark.requirement("A2")
async def test_how_far_it_is_shows_in_the_znodes_until_the_move_is_complete(
    kafka: KafkaController, moves: ZnodeMoves, nursery: trio.Nursery
) -> None:
    async def ongoing() -> list[tuple[tuple[int, ...], ...]]:
        found = await moves.list_partition_reassignments()
        assert await moves.list_partition_reassignments([FIRST, SECOND]) == found
        return [(move.replicas, move.adding_replicas, move.removing_replicas, move.isr) for move in found]

    await ask(moves, MOVE)
    assert await ongoing() == [(BOTH, TARGET, ORIGIN, ORIGIN)]  # Kafka has not begun yet
    await nursery.start(kafka.run)
    await trio.testing.wait_all_tasks_blocked()
    [state, _] = (await moves.read_metadata(["orders"])).partitions
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == (BOTH, TARGET, ORIGIN)
    assert await ongoing() == [(BOTH, TARGET, ORIGIN, ORIGIN)]
    assert await moves.list_partition_reassignments([SECOND]) == ()
    kafka.may_catch_up.set()
    await trio.testing.wait_all_tasks_blocked()
    assert await ongoing() == []
    found = await moves.read_metadata()
    assert [(p.replicas, p.leader, p.isr, p.leader_epoch) for p in found.partitions] == [
        (TARGET, 4, TARGET, 3),
        (ORIGIN, 1, ORIGIN, 0),
    ]
    assert found.brokers[0] == BrokerEndpoint(1, "127.0.0.1", 9091)


async def test_a_topic_of_an_old_kafka_moves_as_long_as_its_request_stands(
    kafka: KafkaController, moves: ZnodeMoves
) -> None:
    both = dumps({"version": 1, "partitions": {"0": [1, 2, 3, 4, 5, 6], "1": [1, 2, 3]}})
    await kafka.store.multi([Set(paths.topic("orders"), both, -1)])
    request = formats.encode_reassign_partitions({FIRST: TARGET})
    await kafka.store.multi([Create(paths.REASSIGN_PARTITIONS, request)])
    [move] = await moves.list_partition_reassignments()
    assert move == OngoingReassignment(*FIRST, BOTH, (), ORIGIN, 1, ORIGIN)


async def test_a_cluster_is_led_by_kafka_if_no_controller_of_ours_is(kafka: KafkaController) -> None:
    store = kafka.store
    assert await is_led_by_kafka(store)
    await store.multi([Delete(paths.CONTROLLER)])
    assert await is_led_by_kafka(store)  # its brokers elect the next one
    await _stand(store)
    assert not await is_led_by_kafka(store)


async def test_an_office_of_ours_among_kafkas_brokers_is_not_kafkas_when_its_process_has_died(
    kafka: KafkaController,
) -> None:
    await kafka.store.multi([Delete(paths.CONTROLLER), Create(paths.CONTROLLER, encode_holder(1001, 0))])
    assert not await is_led_by_kafka(kafka.store)


async def test_an_empty_store_is_led_by_nobody() -> None:
    async with MemoryZooKeeper(lambda: 0).session() as store:
        assert not await is_led_by_kafka(store)


async def _stand(store: MetadataStore) -> None:
    for path in ("/klamm", paths.KLAMM_CONTROLLERS):
        await store.multi([Create(path)])
    endpoint = formats.encode_controller_endpoint(BrokerEndpoint(1001, "127.0.0.1", 1))
    await store.multi([Create(paths.controller_endpoint(1001), endpoint, ephemeral=True)])
    await store.multi([Create(paths.CONTROLLER, formats.encode_controller(1001, 0), ephemeral=True)])


@pytest.mark.usefixtures("autojump_clock")
async def test_a_lost_connection_is_waited_out(
    memory: MemoryZooKeeper, kafka: KafkaController, moves: ZnodeMoves, nursery: trio.Nursery
) -> None:
    async def come_back() -> None:
        await trio.sleep(1)
        memory.reconnect(kafka.store.session_id)

    memory.disconnect(kafka.store.session_id)
    nursery.start_soon(come_back)
    assert [error for _, error, _ in await ask(moves, MOVE)] == [ErrorCode.NONE]
    assert await requested(kafka) is not None
