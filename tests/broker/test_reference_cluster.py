"""Reference brokers under a scripted controller: records are copied, kept, cut off and deleted as they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve

from broker.client import GaveUp
from tests.broker.cluster import Cluster, running_cluster, state_of, until
from transport.errors import ApiError, ErrorCode
from transport.messages import FetchPartition, FetchRequest, FetchResult, ProduceRequest
from transport.metadata import TopicPartition

T0 = TopicPartition("t", 0)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def produce(cluster: Cluster, *values: bytes) -> int:
    async with cluster.producer() as producer:
        return await producer.send("t", 0, values)


async def produce_once(cluster: Cluster, broker_id: int, value: bytes, *, acks: int = -1, wait_ms: int = 20_000) -> int:
    response = await cluster.call(broker_id, ProduceRequest("t", 0, acks, wait_ms, (value,)))
    return response.base_offset


async def fetch_as(
    cluster: Cluster, replica_id: int, asked: FetchPartition, *, broker_id: int = 1, wait_ms: int = 0
) -> FetchResult:
    [result] = (await cluster.call(broker_id, FetchRequest(replica_id, wait_ms, (asked,)))).partitions
    return result


# --- producing and consuming ------------------------------------------------------------------------------------


async def test_acknowledged_records_are_on_every_member_of_the_isr(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.lead_and_follow(state_of(), is_new=True)
        assert await produce(cluster, b"a", b"b") == 0
        assert await produce(cluster, b"c") == 2
        assert [cluster.values_on_disk(b, T0) for b in (1, 2, 3)] == [[b"a", b"b", b"c"]] * 3
        async with cluster.consumer() as consumer:
            assert await consumer.read_all("t", 0) == [b"a", b"b", b"c"]
            assert await consumer.read_all("t", 0, 2) == [b"c"]


async def test_nothing_is_appended_for_want_of_in_sync_replicas(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, min_insync_replicas=2) as cluster:
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,)), is_new=True)
        with pytest.raises(ApiError) as refusal:
            await produce_once(cluster, 1, b"x")
        assert refusal.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert await produce_once(cluster, 1, b"the leader's word is enough", acks=1) == 0


async def test_a_record_that_the_isr_does_not_get_is_not_acknowledged_and_not_shown(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)
        with pytest.raises(ApiError) as refusal:
            await produce_once(cluster, 1, b"x", wait_ms=30)
        assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert cluster.values_on_disk(1, T0) == [b"x"]
        assert (await fetch_as(cluster, -1, FetchPartition("t", 0, 0, 1000))).records == ()
        async with cluster.producer() as producer:
            with pytest.raises(GaveUp, match="t-0: no success within"):
                await producer.send("t", 0, [b"y"], give_up_after=0.05)


async def test_a_leader_that_is_deposed_acknowledges_nothing_any_more(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)

        async def depose() -> None:
            await until(lambda: bool(cluster.values_on_disk(1, T0)))
            await cluster.order(1, evolve(state, leader=2, leader_epoch=1, partition_epoch=1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(depose)
            with trio.fail_after(20), pytest.raises(ApiError) as refusal:
                await produce_once(cluster, 1, b"x", wait_ms=60_000)
        assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.requirement("A4")
async def test_a_bump_of_the_leader_epoch_disturbs_no_producer(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)

        async def bump() -> None:
            await until(lambda: bool(cluster.values_on_disk(1, T0)))
            await cluster.start_broker(2)
            await cluster.lead_and_follow(evolve(state, leader_epoch=1, partition_epoch=1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(bump)
            assert await produce_once(cluster, 1, b"x") == 0


async def test_a_consumer_waits_for_records(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)
        seen: list[tuple[int, bytes]] = []

        async def consume() -> None:
            async with cluster.consumer() as consumer:
                async for offset, value in consumer.records("t", 0):
                    seen.append((offset, value))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume)
            for value in numbers(3):
                await produce(cluster, value)
            await until(lambda: seen == list(enumerate(numbers(3))))
            nursery.cancel_scope.cancel()


async def test_a_record_over_the_limit_is_refused(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, message_max_bytes=10) as cluster:
        await cluster.lead_and_follow(state_of((1,)), is_new=True)
        with pytest.raises(ApiError, match="11 bytes exceeds the limit of 10"):
            await produce(cluster, b"elevenbytes")


async def test_a_broker_without_the_replica_says_so(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        with pytest.raises(ApiError) as refusal:
            await produce_once(cluster, 1, b"x")
        assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        result = await fetch_as(cluster, 2, FetchPartition("t", 0, 0, 100))
        assert result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- following --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A5")
async def test_an_added_replica_copies_and_joins_the_isr(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, replica_fetch_max_bytes=100) as cluster:
        await cluster.lead_and_follow(state_of((1,)), is_new=True)
        await produce(cluster, *numbers(100))
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,), leader_epoch=1, partition_epoch=1))
        await until(lambda: cluster.states[T0].isr == (1, 2))
        assert cluster.values_on_disk(2, T0) == numbers(100)


async def test_a_partition_that_comes_does_not_wait_out_the_long_poll_of_the_others(tmp_path: Path) -> None:
    """With a poll of a minute, and 20 s for the record to be acknowledged."""
    async with running_cluster(tmp_path, 1, 2, replica_fetch_wait_max_ms=60_000) as cluster:
        await cluster.lead_and_follow(state_of((1, 2), partition=1), is_new=True)
        async with cluster.producer() as producer:
            await producer.send("t", 1, [b"acknowledged by the fetch that now waits for more"])
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)
        assert await produce_once(cluster, 1, b"x") == 0


async def test_an_answer_has_a_limit_that_one_record_may_exceed(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, fetch_max_bytes=100) as cluster:
        for partition in range(3):
            await cluster.lead_and_follow(state_of((1,), partition=partition), is_new=True)
            async with cluster.producer() as producer:
                await producer.send("t", partition, [b"x" * 60] * 2)
        asked = tuple(FetchPartition("t", partition, 0, 1000) for partition in range(3))
        response = await cluster.call(1, FetchRequest(-1, 0, asked))
        assert [len(result.records) for result in response.partitions] == [1, 1, 0]


async def test_a_partition_that_never_rests_does_not_starve_the_others(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, fetch_max_bytes=50) as cluster:
        for partition in range(2):
            await cluster.lead_and_follow(state_of((1, 2), partition=partition), is_new=True)

        async def never_rest() -> None:
            async with cluster.producer() as producer:
                while True:
                    await producer.send("t", 0, numbers(100), acks=1)

        async with trio.open_nursery() as nursery, cluster.producer() as producer:
            nursery.start_soon(never_rest)
            await producer.send("t", 1, numbers(10), give_up_after=20)
            nursery.cancel_scope.cancel()


async def test_partitions_beyond_the_limit_of_an_answer_get_their_turn(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, fetch_max_bytes=50) as cluster:
        partitions = range(6)
        for partition in partitions:
            await cluster.lead_and_follow(state_of((1, 2), partition=partition), is_new=True)
        async with cluster.producer() as producer:
            for partition in partitions:
                await producer.send("t", partition, numbers(10), acks=1)
        copies = [TopicPartition("t", partition) for partition in partitions]
        await until(lambda: all(cluster.values_on_disk(2, tp) == numbers(10) for tp in copies))


async def test_a_silent_follower_leaves_the_isr_and_comes_back_when_it_has_caught_up(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, replica_lag_time_max_ms=300) as cluster:
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)
        await cluster.kill_broker(2)
        assert await produce(cluster, b"x") == 0
        assert cluster.states[T0].isr == (1,)
        await cluster.start_broker(2)
        await cluster.lead_and_follow(evolve(cluster.states[T0], leader_epoch=1, partition_epoch=2))
        await until(lambda: cluster.states[T0].isr == (1, 2))
        assert cluster.values_on_disk(2, T0) == [b"x"]


async def test_a_record_is_not_acknowledged_if_too_few_are_left_to_hold_it(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, min_insync_replicas=2, replica_lag_time_max_ms=300) as cluster:
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)
        await cluster.kill_broker(2)
        with pytest.raises(ApiError) as refusal:
            await produce_once(cluster, 1, b"x")
        assert refusal.value.code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


async def test_a_dead_replica_that_was_about_to_join_is_no_longer_waited_for(tmp_path: Path) -> None:
    """Its news come with the metadata, well before it counts as lagging."""
    async with running_cluster(tmp_path, 1, 2) as cluster:
        cluster.refuse = lambda _: ErrorCode.INELIGIBLE_REPLICA
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,)), is_new=True)
        await until(lambda: bool(cluster.altered))
        await cluster.kill_broker(2)

        async def bury() -> None:
            await until(lambda: bool(cluster.values_on_disk(1, T0)))
            await cluster.announce()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(bury)
            assert await produce_once(cluster, 1, b"x", wait_ms=10_000) == 0


async def test_a_refused_proposal_is_made_again_until_it_is_accepted(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        refusals = [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_SERVER_ERROR]
        cluster.refuse = lambda _: refusals.pop(0) if refusals else ErrorCode.NONE
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,)), is_new=True)
        await until(lambda: cluster.states[T0].isr == (1, 2))
        assert len(cluster.altered) == 3


async def test_a_leader_that_was_overtaken_goes_on_from_the_metadata_that_overtook_it(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1, 2), isr=(1,))
        await cluster.lead_and_follow(state, is_new=True)
        cluster.states[T0] = overtaking = evolve(state, partition_epoch=7)
        await cluster.start_broker(2)
        await cluster.announce()
        await cluster.order(2, state, is_new=True)
        await until(lambda: len(cluster.altered) == 1)
        assert cluster.states[T0] == overtaking
        await cluster.announce(overtaking)
        await until(lambda: cluster.states[T0] == evolve(overtaking, isr=(1, 2), partition_epoch=8))


async def test_an_answer_to_a_follower_is_fenced_by_its_leader_epoch(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        await cluster.lead_and_follow(state_of((1, 2), leader_epoch=5), is_new=True)
        expected = {4: ErrorCode.FENCED_LEADER_EPOCH, 5: ErrorCode.NONE, 6: ErrorCode.UNKNOWN_LEADER_EPOCH}
        for epoch, error in expected.items():
            asked = FetchPartition("t", 0, 0, 100, current_leader_epoch=epoch)
            assert (await fetch_as(cluster, 2, asked)).error is error
        await cluster.order(1, state_of((1, 2), leader=2, leader_epoch=6))
        result = await fetch_as(cluster, 2, FetchPartition("t", 0, 0, 100, current_leader_epoch=6))
        assert result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- changes of leader, deletion, restart -----------------------------------------------------------------------


async def test_a_new_leader_makes_a_returning_one_cut_off_what_was_never_acknowledged(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)
        await produce(cluster, b"kept")
        await cluster.kill_broker(2)
        await cluster.call(1, ProduceRequest("t", 0, 1, 1000, (b"lost-1", b"lost-2")))
        await cluster.kill_broker(1)
        assert cluster.values_on_disk(1, T0) == [b"kept", b"lost-1", b"lost-2"]

        await cluster.start_broker(2)
        await cluster.lead_and_follow(evolve(state, leader=2, isr=(2,), leader_epoch=1, partition_epoch=1))
        await produce(cluster, b"new")
        await cluster.start_broker(1)
        await cluster.lead_and_follow(evolve(cluster.states[T0], leader_epoch=2, partition_epoch=2))
        await until(lambda: cluster.states[T0].isr == (2, 1))
        assert [cluster.values_on_disk(b, T0) for b in (1, 2)] == [[b"kept", b"new"]] * 2


async def test_a_partition_without_a_leader_waits(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)
        await produce(cluster, b"a")
        await cluster.lead_and_follow(evolve(state, leader=-1, leader_epoch=1, partition_epoch=1))
        with pytest.raises(ApiError, match="NOT_LEADER_OR_FOLLOWER"):
            await produce_once(cluster, 1, b"b")
        await cluster.lead_and_follow(evolve(state, leader=2, leader_epoch=2, partition_epoch=2))
        assert await produce(cluster, b"b") == 1
        assert cluster.values_on_disk(1, T0) == [b"a", b"b"]


@pytest.mark.requirement("A6")
async def test_a_replica_is_stopped_with_its_data_and_then_deleted(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)
        await produce(cluster, b"a")
        [stopped] = (await cluster.stop(2, state, delete=False)).partitions
        assert stopped.error is ErrorCode.NONE
        assert cluster.values_on_disk(2, T0) == [b"a"]
        await cluster.lead_and_follow(state_of((1,), leader_epoch=1, partition_epoch=1))
        await produce(cluster, b"b")
        assert cluster.values_on_disk(2, T0) == [b"a"]
        for _ in range(2):  # a repetition finds nothing, which is as good
            [deleted] = (await cluster.stop(2, state, delete=True)).partitions
            assert deleted.error is ErrorCode.NONE
        assert [path.name for path in cluster.log_dir(2).iterdir()] == ["meta.properties"]


async def test_data_of_an_earlier_run_is_deleted_too_but_only_of_the_topic_that_is_named(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1,))
        await cluster.lead_and_follow(state, is_new=True)
        await produce(cluster, b"a")
        await cluster.kill_broker(1)
        await cluster.start_broker(1)
        await cluster.stop(1, evolve(state, topic_id="another"), delete=True)
        assert cluster.values_on_disk(1, T0) == [b"a"]
        [refused] = (await cluster.order(1, evolve(state, topic_id="another"))).partitions
        assert refused.error is ErrorCode.UNKNOWN_TOPIC_ID
        await cluster.stop(1, state, delete=True)
        assert cluster.values_on_disk(1, T0) == []


async def test_a_damaged_log_fails_its_partition_and_no_other(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        await cluster.lead_and_follow(state_of((1,)), is_new=True)
        await produce(cluster, b"first", b"second")
        await cluster.kill_broker(1)
        path = cluster.log_dir(1) / "t-0" / "records.log"
        path.write_bytes(path.read_bytes().replace(b"first", b"worst"))
        await cluster.start_broker(1)
        [damaged] = (await cluster.order(1, state_of((1,), leader_epoch=1))).partitions
        assert damaged.error is ErrorCode.KAFKA_STORAGE_ERROR
        [sound] = (await cluster.order(1, state_of((1,), partition=1, leader_epoch=1))).partitions
        assert sound.error is ErrorCode.NONE


async def test_a_cluster_that_was_killed_whole_has_every_acknowledged_record(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, 3) as cluster:
        state = state_of()
        await cluster.lead_and_follow(state, is_new=True)
        await produce(cluster, *numbers(50))
        for broker_id in (1, 2, 3):
            await cluster.kill_broker(broker_id)
        for broker_id in (1, 2, 3):
            await cluster.start_broker(broker_id)
        await cluster.lead_and_follow(evolve(state, leader=3, leader_epoch=1, partition_epoch=1))
        async with cluster.consumer() as consumer:
            assert await consumer.read_all("t", 0, up_to=50) == numbers(50)


def at_epochs(leader_epoch: int, partition_epoch: int) -> dict[str, Any]:
    return {"leader_epoch": leader_epoch, "partition_epoch": partition_epoch}


@pytest.mark.requirement("A4", "A6")
async def test_a_move_to_other_brokers_loses_nothing_while_a_producer_writes(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, *range(1, 7)) as cluster:
        await cluster.lead_and_follow(state_of(), is_new=True)
        acknowledged: list[bytes] = []
        done = trio.Event()

        async def keep_producing() -> None:
            async with cluster.producer() as producer:
                while not done.is_set():
                    value = b"%d" % len(acknowledged)
                    await producer.send("t", 0, [value])
                    acknowledged.append(value)

        async def wait_for_more() -> None:
            enough = len(acknowledged) + 50
            await until(lambda: len(acknowledged) >= enough)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_producing)
            await wait_for_more()
            adding: dict[str, Any] = {"adding_replicas": (4, 5, 6), "removing_replicas": (1, 2, 3)}
            await cluster.lead_and_follow(state_of((4, 5, 6, 1, 2, 3), isr=(1, 2, 3), **at_epochs(1, 1), **adding))
            await until(lambda: set(cluster.states[T0].isr) == set(range(1, 7)))
            await wait_for_more()

            state = cluster.states[T0]
            elected = state_of((4, 5, 6), isr=state.isr, leader=4, **at_epochs(2, state.partition_epoch + 1))
            await cluster.lead_and_follow(elected)
            for old in (1, 2, 3):
                await cluster.stop(old, state, delete=False, leader_epoch=2)
            shrunk = state_of((4, 5, 6), leader=4, **at_epochs(3, cluster.states[T0].partition_epoch + 1))
            await cluster.lead_and_follow(shrunk)
            for old in (1, 2, 3):
                await cluster.stop(old, state, delete=True, leader_epoch=3)
            await wait_for_more()
            done.set()

        async with cluster.consumer() as consumer:
            found = await consumer.read_all("t", 0, up_to=len(acknowledged))
        assert list(dict.fromkeys(found)) == acknowledged
        assert [cluster.values_on_disk(b, T0) for b in range(1, 7)] == [[], [], [], found, found, found]
