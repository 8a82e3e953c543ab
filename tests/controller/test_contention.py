"""Commits that lose again and again are given up with a fault that names them: nothing retries forever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest

from controller.events import BrokerChange, TopicChange, ZkPartitionReassignment
from controller.model.rounds import MAX_ATTEMPTS, Contended, Read, Rounds, read, until_none_is_left
from tests.controller.conftest import TP, Bench
from tests.controller.meddler import Meddler
from transport.metadata import LeaderAndIsr
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Op, Set

ORIGIN, TARGET = (1, 2, 3), (4, 5, 6)

Happening = Callable[[Bench], Awaitable[object]]


async def die(bench: Bench) -> object:
    await bench.unregister(1)
    return await bench.handle(BrokerChange())


async def move(bench: Bench) -> object:
    return await bench.move(TP, TARGET)


async def lose_the_disk(bench: Bench) -> object:
    await bench.unregister(1)
    await bench.register(1, storage_id="new disk")
    return await bench.handle(BrokerChange())


async def appear_without_an_id(bench: Bench) -> object:
    await bench.store.multi([Create(paths.topic("others"), b'{"version":1,"partitions":{"0":[1]}}')])
    return await bench.handle(TopicChange())


async def appear(bench: Bench) -> object:
    await bench.write_topic("others", ORIGIN)
    return await bench.handle(TopicChange())


async def ask_for_the_impossible(bench: Bench) -> object:
    await bench.request_moves({TP: (99,)})
    return await bench.handle(ZkPartitionReassignment())


STATE = formats.encode_partition_state(LeaderAndIsr(1, 0, ORIGIN, 0, 1))
REQUESTS = formats.encode_reassign_partitions({TP: (99,)})


@pytest.mark.parametrize(
    ("happening", "round_", "path", "ops"),
    [
        (die, "leave", paths.partition_state(TP), [Set(paths.partition_state(TP), STATE, -1)]),
        (move, "U1", paths.topic("orders"), None),
        (lose_the_disk, "storage", paths.storage_id(1), [Set(paths.storage_id(1), b"{}", -1)]),
        (
            appear_without_an_id,
            "topics",
            paths.topic("others"),
            [Set(paths.topic("others"), b'{"version":1,"partitions":{"0":[1]}}', -1)],
        ),
        (appear, "create", "/brokers/topics/others/partitions/0", [Delete(paths.topic_partitions("others"))]),
        (
            ask_for_the_impossible,
            "B7",
            paths.REASSIGN_PARTITIONS,
            [Set(paths.REASSIGN_PARTITIONS, REQUESTS, -1)],
        ),
    ],
    ids=["a state", "an assignment", "a storage id", "an id", "a parent", "requests"],
)
async def test_somebody_who_is_always_faster_is_told_from_bad_luck(
    bench: Bench, happening: Happening, round_: str, path: str, ops: Sequence[Op] | None
) -> None:
    await bench.start(ORIGIN, storage_id="old disk")
    if ops is None:
        znode = await bench.znode(path)
        ops = [Set(path, znode.data, -1)]
    meddler = Meddler(bench.store, path, ops, endless=True)
    bench.runner.store = meddler
    with pytest.raises(Contended, match=rf"{round_}: {MAX_ATTEMPTS} attempts were overtaken, the last one at "):
        await happening(bench)
    assert MAX_ATTEMPTS <= meddler.overtaken <= 2 * MAX_ATTEMPTS


def run(rounds: Rounds[None]) -> int:
    """Run rounds that read only; return how many there were."""
    count = 0
    for effect in rounds:
        assert isinstance(effect, Read)
        count += 1
    return count


def test_attempts_that_get_something_done_are_not_counted() -> None:
    calls: list[int] = []

    def attempt(pending: list[int]) -> Rounds[list[int]]:
        calls.append(len(pending))
        yield from read(["/any"])
        return pending[1:] if len(calls) % MAX_ATTEMPTS == 0 else pending

    assert run(until_none_is_left("test", range(5), attempt)) == 5 * MAX_ATTEMPTS


def test_nothing_is_attempted_over_nothing() -> None:
    def attempt(_: list[int]) -> Rounds[list[int]]:
        raise AssertionError

    assert run(until_none_is_left("test", (), attempt)) == 0
