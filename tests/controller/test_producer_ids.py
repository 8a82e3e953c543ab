"""Blocks of ids for idempotent producers: no id is given twice, whoever else gives some."""

from __future__ import annotations

import pytest

from controller.events import RequestEvent
from tests.controller.conftest import Bench
from transport.errors import ApiError, ErrorCode
from transport.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from transport.settings import LONG_MAX
from transport.store import paths
from transport.store.producer_ids import encode_producer_ids
from transport.store.protocol import Delete, Op, Set


async def allocate(bench: Bench, broker_id: int = 1) -> range:
    request = AllocateProducerIdsRequest(broker_id, bench.context.brokers[broker_id].epoch)
    answer = await bench.ask(request, AllocateProducerIdsResponse)
    return range(answer.start, answer.start + answer.count)


async def refusal(bench: Bench, request: AllocateProducerIdsRequest) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        await bench.handle(RequestEvent(request))
    return refused.value.code


async def write(bench: Bench, data: bytes) -> None:
    await bench.store.multi([Set(paths.PRODUCER_IDS, data, -1)])


async def test_each_broker_is_given_the_next_block_and_the_last_one_is_stored(bench: Bench) -> None:
    await bench.start(brokers=(1, 2))
    assert [await allocate(bench), await allocate(bench, 2)] == [range(1_000), range(1_000, 2_000)]
    await bench.fail_over()
    assert await allocate(bench) == range(2_000, 3_000)
    stored = (await bench.znode(paths.PRODUCER_IDS)).data
    assert stored == b'{"version":1,"broker":1,"block_start":"2000","block_end":"2999"}'


async def test_a_store_without_the_znode_has_given_none(bench: Bench) -> None:
    await bench.start(brokers=(1,))
    await bench.store.multi([Delete(paths.PRODUCER_IDS)])
    assert [await allocate(bench), await allocate(bench)] == [range(1_000), range(1_000, 2_000)]


async def test_a_broker_that_takes_a_block_by_itself_meanwhile_keeps_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.start(brokers=(1,))
    multi, others = bench.store.multi, [encode_producer_ids(7, range(5_000, 6_000))]

    async def overtaken(ops: list[Op], **_: object) -> object:
        if others:
            await multi([Set(paths.PRODUCER_IDS, others.pop(), -1)])
        return await multi(ops)

    with monkeypatch.context() as patched:
        patched.setattr(bench.store, "multi", overtaken)
        assert await allocate(bench) == range(6_000, 7_000)
    assert others == []


async def test_only_a_registered_broker_is_given_ids_under_its_epoch_alone(bench: Bench) -> None:
    await bench.start(brokers=(1,))
    epoch = bench.context.brokers[1].epoch
    for stale in (epoch - 1, epoch + 1):
        assert await refusal(bench, AllocateProducerIdsRequest(1, stale)) is ErrorCode.STALE_BROKER_EPOCH
    assert await refusal(bench, AllocateProducerIdsRequest(2, epoch)) is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert (await bench.znode(paths.PRODUCER_IDS)).data == b""


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'{"block_start":0,"block_end":999}',
        b'{"block_start":"9","block_end":"8"}',
        b'{"block_start":"0","block_end":"-1"}',
        b'{"block_start":"0","block_end":"\xc2\xb2"}',
        encode_producer_ids(1, range(LONG_MAX - 500, LONG_MAX)),
        b'{"block_start":"0","block_end":"9223372036854775808"}',
    ],
)
async def test_nothing_is_given_after_a_block_that_is_none_or_the_last(bench: Bench, data: bytes) -> None:
    await bench.start(brokers=(1,))
    await write(bench, data)
    request = AllocateProducerIdsRequest(1, bench.context.brokers[1].epoch)
    assert await refusal(bench, request) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (await bench.znode(paths.PRODUCER_IDS)).data == data
