"""Produce and Fetch of reference brokers: acknowledgements, visible records, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from broker.client import GaveUp
from broker.metadata_cache import MetadataCache
from tests.broker.cluster import numbers, running_cluster, state_of, until
from transport.errors import ApiError, ErrorCode
from transport.messages import FetchPartition, FetchRequest, MetadataRequest, MetadataResponse
from transport.metadata import TopicPartition

T0 = TopicPartition("t", 0)


async def test_acknowledged_records_are_on_every_member_of_the_isr(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, 3) as cluster:
        await cluster.lead_and_follow(state_of(), is_new=True)
        assert await cluster.produce(b"a", b"b") == 0
        assert await cluster.produce(b"c") == 2
        assert [cluster.values_on_disk(b, T0) for b in (1, 2, 3)] == [[b"a", b"b", b"c"]] * 3
        async with cluster.consumer() as consumer:
            assert await consumer.read_all("t", 0) == [b"a", b"b", b"c"]
            assert await consumer.read_all("t", 0, 2) == [b"c"]


async def test_nothing_is_appended_for_want_of_in_sync_replicas(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, min_insync_replicas=2) as cluster:
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,)), is_new=True)
        with pytest.raises(ApiError) as refusal:
            await cluster.produce_once(1, b"x")
        assert refusal.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert await cluster.produce_once(1, b"the leader's word is enough", acks=1) == 0


async def test_a_record_that_the_isr_does_not_get_is_not_acknowledged_and_not_shown(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)
        with pytest.raises(ApiError) as refusal:
            await cluster.produce_once(1, b"x", wait_ms=30)
        assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert cluster.values_on_disk(1, T0) == [b"x"]
        assert (await cluster.fetch_as(-1, FetchPartition("t", 0, 0, 1000))).records == ()
        async with cluster.producer() as producer:
            with pytest.raises(GaveUp, match="t-0: no success within"):
                await producer.send("t", 0, [b"y"], give_up_after=0.05)


async def test_a_leader_that_is_deposed_acknowledges_nothing_any_more(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)

        async def depose() -> None:
            await until(lambda: bool(cluster.values_on_disk(1, T0)))
            await cluster.order(1, replace(state, leader=2, leader_epoch=1, partition_epoch=1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(depose)
            with trio.fail_after(20), pytest.raises(ApiError) as refusal:
                await cluster.produce_once(1, b"x", wait_ms=60_000)
        assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.requirement("A4")
async def test_a_bump_of_the_leader_epoch_disturbs_no_producer(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)

        async def bump() -> None:
            await until(lambda: bool(cluster.values_on_disk(1, T0)))
            await cluster.start_broker(2)
            await cluster.lead_and_follow(replace(state, leader_epoch=1, partition_epoch=1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(bump)
            assert await cluster.produce_once(1, b"x") == 0


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
                await cluster.produce(value)
            await until(lambda: seen == list(enumerate(numbers(3))))
            nursery.cancel_scope.cancel()


async def test_a_consumer_does_not_read_on_in_a_topic_that_was_created_anew(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster, cluster.consumer() as consumer:
        deleted, created = state_of((1,), topic_id="deleted"), state_of((1,), topic_id="created")
        await cluster.lead_and_follow(deleted, is_new=True)
        await cluster.produce(b"old-0")
        records = consumer.records("t", 0)
        assert await anext(records) == (0, b"old-0")
        await cluster.stop(1, deleted, delete=True)
        await cluster.lead_and_follow(created, is_new=True)
        await cluster.produce(b"new-0", b"new-1")
        with pytest.raises(ApiError, match="UNKNOWN_TOPIC_ID: t-0 was recreated while it was read"):
            await anext(records)
        assert await consumer.read_all("t", 0) == [b"new-0", b"new-1"]


async def test_a_producer_learns_of_all_leaders_of_a_topic_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster, cluster.producer() as producer:
        for partition in range(4):
            leader = 1 + partition % 2
            await cluster.lead_and_follow(state_of((leader,), leader=leader, partition=partition), is_new=True)
        asked: list[MetadataRequest] = []
        describe = MetadataCache.describe

        def noting(cache: MetadataCache, request: MetadataRequest) -> MetadataResponse:
            asked.append(request)
            return describe(cache, request)

        monkeypatch.setattr(MetadataCache, "describe", noting)
        for partition in range(4):
            assert await producer.send("t", partition, [b"x"]) == 0
        assert asked == [MetadataRequest(("t",))]
        with pytest.raises(GaveUp, match="UNKNOWN_TOPIC_OR_PARTITION: t-4 is not known"):
            await producer.send("t", 4, [b"x"], give_up_after=0.05)


async def test_a_record_over_the_limit_is_refused(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, message_max_bytes=10) as cluster:
        await cluster.lead_and_follow(state_of((1,)), is_new=True)
        with pytest.raises(ApiError, match="11 bytes exceeds the limit of 10"):
            await cluster.produce(b"elevenbytes")


async def test_a_broker_without_the_replica_says_so(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        with pytest.raises(ApiError) as refusal:
            await cluster.produce_once(1, b"x")
        assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        result = await cluster.fetch_as(2, FetchPartition("t", 0, 0, 100))
        assert result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_answer_has_a_limit_that_one_record_may_exceed(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, fetch_max_bytes=100) as cluster:
        for partition in range(3):
            await cluster.lead_and_follow(state_of((1,), partition=partition), is_new=True)
            async with cluster.producer() as producer:
                await producer.send("t", partition, [b"x" * 60] * 2)
        asked = tuple(FetchPartition("t", partition, 0, 1000) for partition in range(3))
        response = await cluster.call(1, FetchRequest(-1, 0, asked))
        assert [len(result.records) for result in response.partitions] == [1, 1, 0]


async def test_a_follower_is_answered_nothing_that_it_says_to_know(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,), partition=0), is_new=True)
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,), partition=1), is_new=True)
        await cluster.produce(b"a")
        end = FetchPartition("t", 0, 1, 100)
        known, stale = replace(end, high_watermark=1), replace(end, high_watermark=0)
        other = FetchPartition("t", 1, 0, 100, high_watermark=0)
        for asked, answered in ([known, other], []), ([end, other], [(0, 1)]), ([other, stale], [(0, 1)]):
            response = await cluster.call(1, FetchRequest(2, 0, tuple(asked)))
            assert [(result.partition, result.high_watermark) for result in response.partitions] == answered
        behind = replace(known, fetch_offset=0)
        assert len((await cluster.fetch_as(2, behind)).records) == 1


@pytest.mark.parametrize("reader", [-1, 2])
async def test_who_waits_for_records_hears_of_it_when_another_leads(tmp_path: Path, reader: int) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)

        async def depose() -> None:
            await trio.testing.wait_all_tasks_blocked(0.01)
            await cluster.order(1, replace(state, leader=2, leader_epoch=1, partition_epoch=1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(depose)
            with trio.fail_after(20):
                asked = FetchPartition("t", 0, 0, 100, 0)
                [result] = (await cluster.call(1, FetchRequest(reader, 60_000, (asked,)))).partitions
        assert result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_an_answer_to_a_follower_is_fenced_by_its_leader_epoch(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        await cluster.lead_and_follow(state_of((1, 2), leader_epoch=5), is_new=True)
        expected = {4: ErrorCode.FENCED_LEADER_EPOCH, 5: ErrorCode.NONE, 6: ErrorCode.UNKNOWN_LEADER_EPOCH}
        for epoch, error in expected.items():
            asked = FetchPartition("t", 0, 0, 100, current_leader_epoch=epoch)
            assert (await cluster.fetch_as(2, asked)).error is error
        await cluster.order(1, state_of((1, 2), leader=2, leader_epoch=6))
        result = await cluster.fetch_as(2, FetchPartition("t", 0, 0, 100, current_leader_epoch=6))
        assert result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
