"""What a running controller answers to those who may not ask, who ask another one, or who do not wait long enough."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

import controller
from controller.admission import Authorizer, Operation, allow_all
from controller.events import PartitionModifications
from controller.service import ControllerService
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    DescribeReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    Request,
)
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper
from transport.wire import Caller, Connection, open_connection

DESCRIBING = (ListReassignmentsRequest(), DescribeReassignmentsRequest(), ListPartitionReassignmentsRequest())
ALTERING = (AlterPartitionReassignmentsRequest(()), ElectLeadersRequest(ElectionType.PREFERRED))


async def _start(nursery: trio.Nursery, running: Callable[..., Awaitable[None]]) -> ControllerService:
    service: ControllerService = await nursery.start(running)
    with trio.fail_after(10):
        while not service.readiness().is_ready:
            await trio.sleep(0.001)
    return service


@asynccontextmanager
async def asking(
    authorizer: Authorizer = allow_all, *, standby: bool = False, client_id: str = "test"
) -> AsyncIterator[tuple[ControllerService, Connection]]:
    """Run a controller, or a second one that stands by, and connect to it."""
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        running = partial(controller.run, open_store=zookeeper.session, authorizer=authorizer)
        service = await _start(nursery, partial(running, controller.ControllerConfig(1001)))
        if standby:
            service = await _start(nursery, partial(running, controller.ControllerConfig(1002)))
        where = service.endpoint
        async with open_connection(TcpNetwork(), where.host, where.port, client_id=client_id) as connection:
            yield service, connection
        nursery.cancel_scope.cancel()


async def code(connection: Connection, request: Request[object]) -> ErrorCode:
    try:
        await connection.call(request)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.requirement("B4")
async def test_who_may_not_describe_or_alter_the_cluster_is_told_so() -> None:
    asked: list[tuple[Caller, Operation]] = []

    def only_describe(caller: Caller, operation: Operation) -> bool:
        asked.append((caller, operation))
        return operation is Operation.DESCRIBE and caller.client_id == "eve"

    async with asking(only_describe, client_id="eve") as (_, connection):
        assert [await code(connection, each) for each in DESCRIBING] == [ErrorCode.NONE] * 3
        assert [await code(connection, each) for each in ALTERING] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        with pytest.raises(ApiError, match="client 'eve' needs permission to alter the cluster"):
            await connection.call(ALTERING[0])
        assert await code(connection, MetadataRequest(())) is ErrorCode.NONE
    assert {caller for caller, _ in asked} == {Caller("eve", "127.0.0.1")}
    async with asking(only_describe, client_id="mallory") as (_, connection):
        answers = [await code(connection, each) for each in (*DESCRIBING, *ALTERING)]
        assert answers == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 5


@pytest.mark.requirement("B4")
async def test_who_is_not_the_controller_says_so() -> None:
    async with asking(standby=True) as (_, connection):
        assert [await code(connection, each) for each in DESCRIBING] == [ErrorCode.NOT_CONTROLLER] * 3


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("request_", [ListReassignmentsRequest(None, 1), DescribeReassignmentsRequest(None, 1)])
async def test_a_controller_that_is_busy_for_too_long_says_so(
    monkeypatch: pytest.MonkeyPatch, request_: Request[object]
) -> None:
    async with asking() as (service, connection):
        is_stuck = trio.Event()

        async def read(*_: object, **__: object) -> None:
            is_stuck.set()
            await trio.sleep_forever()

        with monkeypatch.context() as patched:
            patched.setattr(service.store, "read", read)
            service.tell(PartitionModifications("orders"))
            await is_stuck.wait()
        assert await code(connection, request_) is ErrorCode.REQUEST_TIMED_OUT
