"""The link of a broker to the active controller, and to its successor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path

import pytest
import trio
from attrs import define, field
from msgspec.structs import replace
from structlog.testing import capture_logs

from broker.config import BrokerConfig
from broker.controlled_shutdown import be_relieved
from broker.controller_link import ControllerLink
from broker.metadata_cache import MetadataCache
from broker.registration import Registration
from tests.broker.cluster import LOOPBACK, new_host
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerEndpoint,
    ControlledShutdownRequest,
    UpdateMetadataRequest,
)
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import Create, Delete, ensure_paths
from transport.wire import Handlers, serve

ITEM = AlterPartitionItem("t", "id-of-t", 0, 5, (1, 2), 7)
RESULT = AlterPartitionResult("t", 0, ErrorCode.NONE, 1, 5, (1, 2), 8)


@define
class FakeController:
    """Answers AlterPartition with RESULT, or with an error."""

    error: ErrorCode = ErrorCode.NONE
    errors: float = inf
    """The number of such answers."""

    silences: int = 0
    """The number of requests that get no answer."""

    requests: list[AlterPartitionRequest] = field(factory=list)

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.requests.append(request)
        if len(self.requests) <= self.silences:
            await trio.sleep_forever()
        if self.error is not ErrorCode.NONE and len(self.requests) <= self.errors:
            raise ApiError(self.error)
        return AlterPartitionResponse((RESULT,))

    async def start(self, nursery: trio.Nursery, controller_id: int) -> BrokerEndpoint:
        handlers: Handlers = dict.fromkeys((AlterPartitionRequest, ControlledShutdownRequest), self.alter_partition)
        port: int = await nursery.start(partial(serve, TcpNetwork(), handlers, LOOPBACK, 0))
        return BrokerEndpoint(controller_id, LOOPBACK, port)


@define
class LinkBench:
    link: ControllerLink
    metadata: MetadataCache
    store: MemoryStore
    nursery: trio.Nursery

    def hear_of(self, controller: BrokerEndpoint, epoch: int = 1) -> None:
        self.metadata.update(UpdateMetadataRequest(controller.id, epoch, 1, controller, None, ()))

    async def elect(self, controller: BrokerEndpoint) -> None:
        data = formats.encode_controller_endpoint(controller)
        await self.store.multi(
            [
                Create(paths.CONTROLLER, formats.encode_controller(controller.id, 0), ephemeral=True),
                Create(paths.controller_endpoint(controller.id), data, ephemeral=True),
            ]
        )


@asynccontextmanager
async def running_link(directory: Path, seconds: float = 30.0) -> AsyncIterator[LinkBench]:
    async with MemoryZooKeeper(lambda: 0).session() as store, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        metadata = MetadataCache()
        registration = Registration(store, new_host(), BrokerConfig(1, directory), "s")
        await registration.register(1)
        link = ControllerLink(store, TcpNetwork(), new_host(), metadata, registration, seconds)
        yield LinkBench(link, metadata, store, nursery)
        nursery.cancel_scope.cancel()


async def test_the_controller_that_spoke_last_is_asked(tmp_path: Path) -> None:
    controller = FakeController()
    async with running_link(tmp_path) as it:
        it.hear_of(await controller.start(it.nursery, 100))
        assert await it.link.alter_partition([ITEM]) == (RESULT,)
        [request] = controller.requests
        assert (request.broker_id, request.partitions) == (1, (ITEM,))
        assert request.broker_epoch > 0


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR])
async def test_after_a_refusal_the_store_says_who_the_controller_is(tmp_path: Path, error: ErrorCode) -> None:
    deposed, controller = FakeController(error), FakeController()
    async with running_link(tmp_path) as it:
        it.hear_of(await deposed.start(it.nursery, 100))
        await it.elect(await controller.start(it.nursery, 101))
        assert await it.link.alter_partition([ITEM]) == (RESULT,)
        assert await it.link.alter_partition([ITEM]) == (RESULT,)
        assert (len(deposed.requests), len(controller.requests)) == (1, 2)


async def test_a_broker_that_may_not_says_what_it_needs_and_asks_again_until_it_may(tmp_path: Path) -> None:
    controller = FakeController(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, errors=3)
    async with running_link(tmp_path) as it:
        it.hear_of(await controller.start(it.nursery, 100))
        with capture_logs() as logs:
            assert await it.link.alter_partition([ITEM]) == (RESULT,)
        assert len(controller.requests) == 4, "the same controller, as the store knows no other"
    assert [(line["log_level"], line["controller"]) for line in logs] == [("warning", 100)] * 3
    assert "ClusterAction on the cluster" in logs[0]["event"]


async def test_a_broker_that_may_not_be_relieved_stops_after_as_many_attempts_as_its_settings_say(
    tmp_path: Path,
) -> None:
    controller = FakeController(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    config = BrokerConfig(1, tmp_path, controlled_shutdown_max_retries=2, controlled_shutdown_retry_backoff_ms=1)
    async with running_link(tmp_path) as it:
        it.hear_of(await controller.start(it.nursery, 100))
        outcome = await be_relieved(config, it.link)
    assert not outcome.is_relieved
    assert "CLUSTER_AUTHORIZATION_FAILED" in outcome.failure
    assert len(controller.requests) == 2


async def test_a_controller_that_is_gone_is_looked_for_until_there_is_one(tmp_path: Path) -> None:
    controller = FakeController()
    async with running_link(tmp_path) as it:
        gone = BrokerEndpoint(100, LOOPBACK, 1)
        it.hear_of(gone)
        await it.elect(gone)

        async def elect_another() -> None:
            await it.store.multi([Delete(paths.CONTROLLER)])
            await it.elect(await controller.start(it.nursery, 101))

        it.nursery.start_soon(elect_another)
        assert await it.link.alter_partition([ITEM]) == (RESULT,)


async def test_a_newer_controller_that_speaks_is_believed_again(tmp_path: Path) -> None:
    deposed, other, newest = FakeController(ErrorCode.NOT_CONTROLLER), FakeController(), FakeController()
    async with running_link(tmp_path) as it:
        it.hear_of(await deposed.start(it.nursery, 100))
        await it.elect(await other.start(it.nursery, 101))
        await it.link.alter_partition([ITEM])
        it.hear_of(await newest.start(it.nursery, 102), epoch=2)
        await it.link.alter_partition([ITEM])
        assert (len(other.requests), len(newest.requests)) == (1, 1)


async def test_an_answer_that_trying_does_not_mend_is_the_callers(tmp_path: Path) -> None:
    controller = FakeController(ErrorCode.STALE_BROKER_EPOCH)
    async with running_link(tmp_path) as it:
        it.hear_of(await controller.start(it.nursery, 100))
        with pytest.raises(ApiError, match="STALE_BROKER_EPOCH"):
            await it.link.alter_partition([ITEM])


async def test_a_controller_that_is_silent_for_the_timeout_is_asked_again(tmp_path: Path) -> None:
    controller = FakeController(silences=1)
    async with running_link(tmp_path, seconds=0.05) as it:
        endpoint = await controller.start(it.nursery, 100)
        it.hear_of(endpoint)
        await it.elect(endpoint)
        with trio.fail_after(10):
            assert await it.link.alter_partition([ITEM]) == (RESULT,)
        assert len(controller.requests) >= 2


async def test_more_isrs_than_one_request_may_list_go_in_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AlterPartitionRequest, "max_listed", 2)
    async with running_link(tmp_path) as fixture:
        controller = FakeController()
        fixture.hear_of(await controller.start(fixture.nursery, 1001))
        items = [replace(ITEM, partition=number) for number in range(3)]
        assert await fixture.link.alter_partition(items) == (RESULT, RESULT)
        assert [request.partitions for request in controller.requests] == [tuple(items[:2]), tuple(items[2:])]
