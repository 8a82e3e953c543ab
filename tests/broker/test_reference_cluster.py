"""Reference brokers under a scripted controller: records are copied, kept, truncated and deleted correctly."""

from __future__ import annotations

import gc
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from msgspec.structs import replace
from structlog.testing import capture_logs
from trio.lowlevel import Task

from broker.fencing import HostedReplica
from broker.reference.fetcher import Fetcher
from broker.reference.leadership import Leadership
from broker.reference.log import Log
from broker.reference.replica import Replica
from broker.topic_configs import TopicConfig
from tests.broker.cluster import LOOPBACK, numbers, running_cluster, state_of, until
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    BrokerEndpoint,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    PartitionState,
    ProduceRequest,
    Record,
)
from transport.metadata import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, TopicPartition
from transport.wire import Connection, serve

T0 = TopicPartition("t", 0)


# --- following --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A5")
async def test_an_added_replica_copies_and_joins_the_isr(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, replica_fetch_max_bytes=100) as cluster:
        await cluster.lead_and_follow(state_of((1,)), is_new=True)
        await cluster.produce(*numbers(100))
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
        assert await cluster.produce_once(1, b"x") == 0


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
        assert await cluster.produce(b"x") == 0
        assert cluster.states[T0].isr == (1,)
        await cluster.start_broker(2)
        await cluster.lead_and_follow(replace(cluster.states[T0], leader_epoch=1, partition_epoch=2))
        await until(lambda: cluster.states[T0].isr == (1, 2))
        assert cluster.values_on_disk(2, T0) == [b"x"]


async def test_a_record_is_not_acknowledged_if_too_few_are_left_to_hold_it(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, min_insync_replicas=2, replica_lag_time_max_ms=300) as cluster:
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)
        await cluster.kill_broker(2)
        with pytest.raises(ApiError) as refusal:
            await cluster.produce_once(1, b"x")
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
            assert await cluster.produce_once(1, b"x", wait_ms=10_000) == 0


async def test_a_refused_proposal_is_made_again_until_it_is_accepted(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        refusals = [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_SERVER_ERROR]
        cluster.refuse = lambda _: refusals.pop(0) if refusals else ErrorCode.NONE
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,)), is_new=True)
        await until(lambda: cluster.states[T0].isr == (1, 2))
        assert len(cluster.altered) == 3


async def test_a_replica_that_the_controller_does_not_let_in_stops_no_other_change(tmp_path: Path) -> None:
    """Such a replica is shutting down, or a move removed it, and the leader does not know that yet."""
    async with running_cluster(tmp_path, 1, 2, 3, replica_lag_time_max_ms=300) as cluster:
        cluster.refuse = lambda item: ErrorCode.INELIGIBLE_REPLICA if 3 in item.new_isr else ErrorCode.NONE
        await cluster.lead_and_follow(state_of((1, 2, 3), isr=(1, 2)), is_new=True)
        await until(lambda: any(3 in item.new_isr for item in cluster.altered))
        await cluster.kill_broker(2)
        await cluster.produce(b"x")
        await until(lambda: cluster.states[T0].isr == (1,))
        cluster.refuse = lambda _: ErrorCode.NONE
        await until(lambda: cluster.states[T0].isr == (1, 3))


async def test_a_leader_that_was_overtaken_goes_on_from_the_metadata_that_overtook_it(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1, 2), isr=(1,))
        await cluster.lead_and_follow(state, is_new=True)
        cluster.states[T0] = overtaking = replace(state, partition_epoch=7)
        await cluster.start_broker(2)
        await cluster.announce()
        await cluster.order(2, state, is_new=True)
        await until(lambda: len(cluster.altered) == 1)
        assert cluster.states[T0] == overtaking
        await cluster.announce(overtaking)
        await until(lambda: cluster.states[T0] == replace(overtaking, isr=(1, 2), partition_epoch=8))


async def test_the_metadata_that_overtook_a_leader_may_arrive_before_its_refusal(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1, 2), isr=(1,))
        await cluster.lead_and_follow(state, is_new=True)
        await cluster.start_broker(2)
        cluster.states[T0] = overtaking = replace(state, partition_epoch=7)
        await cluster.announce(overtaking)
        await cluster.order(2, state, is_new=True)
        await until(lambda: cluster.states[T0] == replace(overtaking, isr=(1, 2), partition_epoch=8))
        assert [item.partition_epoch for item in cluster.altered] == [state.partition_epoch, 7]


@pytest.mark.parametrize(
    "nonsense",
    [{"records": (Record(5, b"x"), Record(3, b"x"))}, {"records": (Record(2**31, b"x"),)}, {"diverging_epoch": 0}],
    ids=["epochs that go down", "an epoch too large", "no place to truncate to"],
)
async def test_an_answer_that_no_log_takes_holds_up_its_partition_and_no_other(
    tmp_path: Path, nonsense: dict[str, Any]
) -> None:
    asked: list[FetchRequest] = []

    async def answer(request: FetchRequest) -> FetchResponse:
        asked.append(request)
        results = [FetchResult(item.topic, item.partition, ErrorCode.NONE, **nonsense) for item in request.partitions]
        return FetchResponse(tuple(results))

    async with running_cluster(tmp_path, 1, 2, replica_fetch_backoff_ms=1) as cluster, trio.open_nursery() as nursery:
        port: int = await nursery.start(partial(serve, cluster.network, {FetchRequest: answer}, LOOPBACK, 0))
        await cluster.lead_and_follow(state_of((1, 2), partition=1), is_new=True)
        await cluster.order(2, state_of((9, 2), leader=9), is_new=True)
        await cluster.announce(others=(BrokerEndpoint(9, LOOPBACK, port),))
        await until(lambda: len(asked) > 3)
        assert cluster.values_on_disk(2, T0) == []
        async with cluster.producer() as producer:
            await producer.send("t", 1, [b"acknowledged by both"])
        nursery.cancel_scope.cancel()


# --- changes of leader, deletion, restart -----------------------------------------------------------------------


async def test_a_new_leader_makes_a_returning_one_cut_off_what_was_never_acknowledged(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)
        await cluster.produce(b"kept")
        await cluster.kill_broker(2)
        await cluster.call(1, ProduceRequest("t", 0, 1, 1000, (b"lost-1", b"lost-2")))
        await cluster.kill_broker(1)
        assert cluster.values_on_disk(1, T0) == [b"kept", b"lost-1", b"lost-2"]

        await cluster.start_broker(2)
        await cluster.lead_and_follow(replace(state, leader=2, isr=(2,), leader_epoch=1, partition_epoch=1))
        await cluster.produce(b"new")
        await cluster.start_broker(1)
        await cluster.lead_and_follow(replace(cluster.states[T0], leader_epoch=2, partition_epoch=2))
        await until(lambda: cluster.states[T0].isr == (2, 1))
        assert [cluster.values_on_disk(b, T0) for b in (1, 2)] == [[b"kept", b"new"]] * 2


async def test_a_partition_without_a_leader_waits(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)
        await cluster.produce(b"a")
        await cluster.lead_and_follow(replace(state, leader=-1, leader_epoch=1, partition_epoch=1))
        with pytest.raises(ApiError, match="NOT_LEADER_OR_FOLLOWER"):
            await cluster.produce_once(1, b"b")
        await cluster.lead_and_follow(replace(state, leader=2, leader_epoch=2, partition_epoch=2))
        assert await cluster.produce(b"b") == 1
        assert cluster.values_on_disk(1, T0) == [b"a", b"b"]


@pytest.mark.requirement("A6")
async def test_a_replica_is_stopped_with_its_data_and_then_deleted(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        state = state_of((1, 2))
        await cluster.lead_and_follow(state, is_new=True)
        await cluster.produce(b"a")
        [stopped] = (await cluster.stop(2, state, delete=False)).partitions
        assert stopped.error is ErrorCode.NONE
        assert cluster.values_on_disk(2, T0) == [b"a"]
        await cluster.lead_and_follow(state_of((1,), leader_epoch=1, partition_epoch=1))
        await cluster.produce(b"b")
        assert cluster.values_on_disk(2, T0) == [b"a"]
        for _ in range(2):  # a repetition finds nothing, which is as good
            [deleted] = (await cluster.stop(2, state, delete=True)).partitions
            assert deleted.error is ErrorCode.NONE
        assert [path.name for path in cluster.log_dir(2).iterdir()] == ["meta.properties"]


async def test_data_of_an_earlier_run_is_deleted_too_but_only_of_the_topic_that_is_named(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        state = state_of((1,))
        await cluster.lead_and_follow(state, is_new=True)
        await cluster.produce(b"a")
        await cluster.kill_broker(1)
        await cluster.start_broker(1)
        with capture_logs() as logged:
            [done] = (await cluster.stop(1, replace(state, topic_id="another"), delete=True)).partitions
        assert done.error is ErrorCode.NONE, "nothing of that topic is here, or its deletion would wait for a namesake"
        assert [line["deleted"] for line in logged if line["event"] == "stopped"] == [False]
        assert cluster.values_on_disk(1, T0) == [b"a"]
        [refused] = (await cluster.order(1, replace(state, topic_id="another"))).partitions
        # A failure of the service, which the controller repeats: the deletion may still be on its way.
        assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
        assert refused.message.startswith("UNKNOWN_TOPIC_ID: the replica here has topic id id-of-t, not another")
        await cluster.stop(1, state, delete=True)
        assert cluster.values_on_disk(1, T0) == []


async def test_a_replica_of_a_deleted_topic_is_no_copy_of_the_topic_that_has_its_name_now(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        deleted, created = state_of((1, 2), topic_id="deleted"), state_of((1, 2), topic_id="created")
        await cluster.lead_and_follow(deleted, is_new=True)
        await cluster.produce(b"old")
        await cluster.stop(1, deleted, delete=True)
        cluster.states[T0] = created
        await cluster.order(1, created, is_new=True)

        async def replace_the_old_replica() -> None:
            await until(lambda: cluster.values_on_disk(1, T0) == [b"new"])
            asked = FetchPartition("t", 0, 1, 1000, 0, 0, "deleted")  # as the old replica does all the time
            assert (await cluster.fetch_as(2, asked)).error is ErrorCode.INCONSISTENT_TOPIC_ID
            await cluster.stop(2, deleted, delete=True)
            await cluster.order(2, created, is_new=True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(replace_the_old_replica)
            await cluster.produce_once(1, b"new")
            assert cluster.values_on_disk(2, T0) == [b"new"]


async def test_a_damaged_log_fails_its_partition_and_no_other(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster:
        await cluster.lead_and_follow(state_of((1,)), is_new=True)
        await cluster.produce(b"first", b"second")
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
        await cluster.produce(*numbers(50))
        for broker_id in (1, 2, 3):
            await cluster.kill_broker(broker_id)
        for broker_id in (1, 2, 3):
            await cluster.start_broker(broker_id)
        await cluster.lead_and_follow(replace(state, leader=3, leader_epoch=1, partition_epoch=1))
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


# --- what is left over ------------------------------------------------------------------------------------------


def kept() -> Counter[str]:
    """Count what brokers keep of partitions, controllers and connections."""
    gc.collect()
    kinds = (Replica, Leadership, Log, HostedReplica, TopicConfig, Fetcher, Connection, Task)
    tracked = gc.get_objects()
    found = Counter(type(thing).__name__ for thing in tracked if type(thing) in kinds)
    # The collector does not track messages; what refers to them it does.
    states = {id(referent) for referent in gc.get_referents(*tracked) if type(referent) is PartitionState}
    return found + Counter({PartitionState.__name__: len(states)})


async def test_topics_that_come_and_go_under_ever_new_controllers_leave_nothing_in_memory(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)

        async def come_and_go(number: int) -> None:
            cluster.epoch += 1
            state = state_of((1, 2), topic=f"u{number}", topic_id=f"id-{number}", controller_epoch=cluster.epoch)
            await cluster.lead_and_follow(state, is_new=True)
            async with cluster.producer() as producer:
                await producer.send(state.topic, 0, [b"x"])
            for broker_id in (1, 2):
                await cluster.stop(broker_id, state, delete=True, leader_epoch=EPOCH_DURING_DELETE)
            await cluster.announce(replace(state, leader=LEADER_DURING_DELETE))
            del cluster.states[TopicPartition(state.topic, 0)]
            cluster.altered.clear()

        async def rest() -> Counter[str]:
            await cluster.produce_once(1, b"the follower fetches again")
            await trio.testing.wait_all_tasks_blocked(0.05)
            return kept()

        await come_and_go(0)
        before = await rest()
        for number in range(1, 8):
            await come_and_go(number)
        after = await rest()
        assert after == before
