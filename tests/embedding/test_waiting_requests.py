"""Requests that wait for the controller: only while their caller waits, and behind events of the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from structlog.testing import capture_logs

from controller.events import BrokerChange, PartitionModifications
from controller.node import waiting_requests
from controller.node.service import ControllerService
from controller.observation.observer import Observer
from tests.kit.service import Controllers, connected, error_code, until
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionRequest,
    CommitTraceRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeReassignmentsRequest,
    ListReassignmentsRequest,
    NewTopic,
    Request,
)
from transport.store import paths

NOTHING_WAITS = 0


class Begun(Observer):
    """Remembers the names of events as their turns come."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def processing(self, event: str) -> None:
        self.names.append(event)


async def ready(controllers: Controllers, observer: Observer | None = None) -> ControllerService:
    service = await controllers.start(observer=observer)
    await until(lambda: service.readiness().is_ready and service.queue_size() == NOTHING_WAITS)
    return service


@asynccontextmanager
async def busy(service: ControllerService, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let an event hang in the store within the body."""
    is_stuck, may_go_on = trio.Event(), trio.Event()
    read = service.store.read

    async def read_slowly(wanted: list[str], *, watch: bool = False) -> object:
        if paths.topic("busy") in wanted:
            is_stuck.set()
            await may_go_on.wait()
        return await read(wanted, watch=watch)

    with monkeypatch.context() as patched:
        patched.setattr(service.store, "read", read_slowly)
        service.tell(PartitionModifications("busy"))
        await is_stuck.wait()
        try:
            yield
        finally:
            may_go_on.set()


def processed(service: ControllerService) -> Counter[str]:
    return Counter({name: each.count for name, each in service.statistics().items()})


async def outcome(service: ControllerService, request: Request[object], *, client: str = "test") -> ErrorCode:
    async with connected(service, client) as connection:
        return await error_code(connection, request)


# --- what nobody waits for --------------------------------------------------------------------------------------


@pytest.mark.requirement("B4", "E1")
async def test_what_was_answered_by_time_is_not_computed_any_more(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await ready(controllers)
    async with busy(service, monkeypatch):
        for request in (ListReassignmentsRequest(None, 0), DescribeReassignmentsRequest(None, 1)):
            for _ in range(50):
                assert await outcome(service, request) is ErrorCode.REQUEST_TIMED_OUT
        assert service.queue_size() == NOTHING_WAITS
    assert await outcome(service, ListReassignmentsRequest()) is ErrorCode.NONE
    counts = processed(service)
    assert (counts["ListReassignments"], counts["DescribeReassignments"]) == (1, 0)


@pytest.mark.requirement("E1")
async def test_what_a_client_asked_for_that_is_gone_is_not_done(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await ready(controllers)
    async with busy(service, monkeypatch):
        client = trio.CancelScope()
        controllers.nursery.start_soon(_ask_within, client, service, CreateTopicsRequest((NewTopic("orders", 1, 1),)))
        await until(lambda: service.queue_size() == 1)
        client.cancel()
        await until(lambda: service.queue_size() == NOTHING_WAITS)
    assert await outcome(service, ListReassignmentsRequest()) is ErrorCode.NONE
    assert processed(service)["CreateTopics"] == 0


async def _ask_within(scope: trio.CancelScope, service: ControllerService, request: Request[object]) -> None:
    with scope:
        await outcome(service, request)


@pytest.mark.parametrize("ms", [-1, -(2**63), 2**31])
async def test_a_time_that_nobody_can_wait_is_refused_in_a_sentence(controllers: Controllers, ms: int) -> None:
    service = await ready(controllers)
    with capture_logs() as logs:
        for request in (
            ListReassignmentsRequest(None, ms),
            DescribeReassignmentsRequest(None, ms),
            CommitTraceRequest(10, ms),
        ):
            assert await outcome(service, request) is ErrorCode.INVALID_REQUEST
    assert [line for line in logs if line["log_level"] in ("error", "critical")] == []


# --- who goes first ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("E1")
async def test_a_dead_broker_waits_for_no_administrator(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits at most for the request that is being processed."""
    begun = Begun()
    service = await ready(controllers, begun)
    async with busy(service, monkeypatch):
        for number in range(100):
            request = CreateTopicsRequest((NewTopic(f"orders-{number}", 1, 1),))
            controllers.nursery.start_soon(partial(outcome, service, request, client=f"client-{number}"))
        await until(lambda: service.queue_size() == 100)
        controllers.nursery.start_soon(outcome, service, AlterPartitionRequest(1, 1, ()))
        await until(lambda: service.queue_size() == 101)
        service.tell(BrokerChange())
        begun.names.clear()
    await until(lambda: begun.names.count("CreateTopics") == 100)
    assert begun.names[:2] == ["AlterPartition", "BrokerChange"]


async def test_requests_that_list_too_much_together_are_told_so(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_requests, "MAX_WAITING_ENTRIES", 10)
    service = await ready(controllers)
    async with busy(service, monkeypatch):
        controllers.nursery.start_soon(outcome, service, DeleteTopicsRequest(("a",) * 6))
        await until(lambda: service.queue_size() == 1)
        assert await outcome(service, DeleteTopicsRequest(("b",) * 5)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        controllers.nursery.start_soon(outcome, service, DeleteTopicsRequest(("b",) * 4))
        await until(lambda: service.queue_size() == 2)
    await until(lambda: service.queue_size() == NOTHING_WAITS)
    assert await outcome(service, DeleteTopicsRequest(("b",) * 10)) is ErrorCode.NONE


async def test_administrators_that_are_too_many_are_told_so_and_brokers_are_not(
    controllers: Controllers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_requests, "MAX_WAITING_REQUESTS", 20)
    service = await ready(controllers)
    async with busy(service, monkeypatch):
        for _ in range(20):
            controllers.nursery.start_soon(outcome, service, ListReassignmentsRequest())
        await until(lambda: service.queue_size() == 20)
        assert await outcome(service, ListReassignmentsRequest()) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        controllers.nursery.start_soon(outcome, service, AlterPartitionRequest(1, 1, ()))
        await until(lambda: service.queue_size() == 21)
    await until(lambda: service.queue_size() == NOTHING_WAITS)
    assert await outcome(service, ListReassignmentsRequest()) is ErrorCode.NONE
