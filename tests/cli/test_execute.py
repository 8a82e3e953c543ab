"""`klamm reassignment execute` against a scripted controller, with Ctrl-C in each phase."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from attrs import define, field

from tests.cli.shell import without_cluster
from transport.errors import ErrorCode
from transport.messages import (
    UNTHROTTLED,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    BrokerEndpoint,
    DescribeReassignmentsRequest,
    DescribeReassignmentsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionError,
    PartitionState,
    ReassignmentDescription,
)
from transport.network import TcpNetwork
from transport.wire import serve

INTERRUPTED = 130
MOVE = (
    '{"partitions":[{"topic":"orders","partition":0,"replicas":[3]},{"topic":"orders","partition":1,"replicas":[3]}]}'
)


@define
class Controller:
    """Has two partitions on broker 1. What hangs in `hangs` is asked and never answered."""

    hangs: set[type[object]] = field(factory=set)
    refuses: dict[int, ErrorCode] = field(factory=dict)
    replicas: dict[int, tuple[int, ...]] = field(factory=lambda: {0: (1,), 1: (1,)})
    moving: list[int] = field(factory=list)
    asked: list[object] = field(factory=list)
    port: int = 0
    _news: trio.Event = field(factory=trio.Event)

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Listen until cancelled."""
        handlers = {
            MetadataRequest: self._metadata,
            AlterPartitionReassignmentsRequest: self._alter,
            DescribeReassignmentsRequest: self._describe,
        }
        async with trio.open_nursery() as nursery:
            self.port = await nursery.start(serve, TcpNetwork(), handlers, "127.0.0.1", 0)
            task_status.started()

    async def until_asked(self, what: type[object]) -> None:
        """Wait until a request of that kind has come."""
        while not any(isinstance(request, what) for request in self.asked):
            await self._news.wait()

    async def _take(self, request: object) -> None:
        self.asked.append(request)
        self._news.set()
        self._news = trio.Event()
        if type(request) in self.hangs:
            await trio.sleep_forever()

    async def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        if request.topics:  # else it is asked where the controller is
            await self._take(request)
        states = [
            PartitionState("orders", "id", p, 1, 1, 1, (1,), 1, (3, 1), (3,), (1,))
            if p in self.moving
            else PartitionState("orders", "id", p, 1, 1, 1, (1,), 1, replicas)
            for p, replicas in self.replicas.items()
        ]
        brokers = (BrokerEndpoint(1, "127.0.0.1", 1), BrokerEndpoint(3, "127.0.0.1", 1))
        return MetadataResponse(BrokerEndpoint(1001, "127.0.0.1", self.port), 1, brokers, tuple(states))

    async def _alter(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        await self._take(request)
        answer = [
            PartitionError("orders", item.partition, self.refuses.get(item.partition, ErrorCode.NONE), "as told")
            for item in request.partitions
        ]
        return AlterPartitionReassignmentsResponse(tuple(answer))

    async def _describe(self, request: DescribeReassignmentsRequest) -> DescribeReassignmentsResponse:
        await self._take(request)
        described = [
            ReassignmentDescription("orders", p, 7, 0, 1, UNTHROTTLED, (3, 1), (3,), (1,), (1,), (3,), (), "luck")
            for p in self.moving
        ]
        return DescribeReassignmentsResponse(tuple(described))


@pytest.fixture
async def controller(nursery: trio.Nursery) -> Controller:
    controller = Controller()
    await nursery.start(controller.serve)
    return controller


async def execute(
    controller: Controller,
    directory: Path,
    *options: str,
    interrupt_at: type[object] | None = None,
    move: str = MOVE,
) -> tuple[int, list[str]]:
    """Execute a file; press Ctrl-C when the controller gets such a request. Return exit code and lines."""
    file = directory / "move.json"
    await trio.Path(file).write_text(move)
    command = [sys.executable, "-m", "klamm", "reassignment", "execute", "--reassignment-json-file", str(file)]
    command += ["--rollback-json-file", str(directory / "back.json"), *options]
    command += ["--bootstrap-server", f"127.0.0.1:{controller.port}"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    if interrupt_at is not None:
        await controller.until_asked(interrupt_at)
        process.send_signal(signal.SIGINT)
    said = b"".join([part async for part in process.stdout])
    return await process.wait(), without_cluster(said.decode()).splitlines()


def kinds(controller: Controller) -> Sequence[str]:
    return list(dict.fromkeys(type(request).__name__.removesuffix("Request") for request in controller.asked))


@pytest.mark.requirement("A2")
async def test_while_it_checks_nothing_is_begun(controller: Controller, tmp_path: Path) -> None:
    controller.hangs = {MetadataRequest}
    said = await execute(controller, tmp_path, interrupt_at=MetadataRequest)
    assert said == (INTERRUPTED, ["interrupted: nothing was begun"])
    assert kinds(controller) == ["Metadata"]


@pytest.mark.requirement("A2")
async def test_while_the_controller_is_asked_it_looks_what_came_of_it(controller: Controller, tmp_path: Path) -> None:
    controller.hangs, controller.replicas = {AlterPartitionReassignmentsRequest}, {0: (1,), 1: (1,)}
    controller.moving.append(1)
    said = await execute(controller, tmp_path, interrupt_at=AlterPartitionReassignmentsRequest)
    assert said == (
        INTERRUPTED,
        [
            "orders-0: was not begun: run this again",
            "orders-1: not complete, continues by itself: in progress, waits for luck",
        ],
    )  # fmt: skip
    assert kinds(controller) == ["Metadata", "AlterPartitionReassignments", "DescribeReassignments"]


@pytest.mark.requirement("A2")
async def test_while_nobody_answers_it_tells_what_it_saw_last(controller: Controller, tmp_path: Path) -> None:
    controller.hangs = {DescribeReassignmentsRequest}
    code, said = await execute(controller, tmp_path, interrupt_at=DescribeReassignmentsRequest)
    assert code == INTERRUPTED
    assert said == [
        "no controller answers: this is the last known state",
        "orders-0: not complete, continues by itself: in progress",
        "orders-1: not complete, continues by itself: in progress",
    ]


@pytest.mark.requirement("A2", "A3")
async def test_what_the_controller_refuses_does_not_keep_the_others(controller: Controller, tmp_path: Path) -> None:
    controller.refuses[1] = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    controller.replicas[0] = (3,)
    said = await execute(controller, tmp_path)
    assert said == (1, ["orders-0: complete", "orders-1: refused: as told"])
    assert await trio.Path(tmp_path / "back.json").exists()


async def test_a_way_back_that_is_the_same_may_stand_there_already(controller: Controller, tmp_path: Path) -> None:
    controller.moving[:] = [0, 1]
    first = await execute(controller, tmp_path, "--no-wait")
    assert first == (0, ["orders-0: begun", "orders-1: begun"])
    controller.replicas.update({0: (3,), 1: (3,)})
    assert (await execute(controller, tmp_path, "--no-wait")) == first
    controller.moving.clear()
    code, [said] = await execute(controller, tmp_path)
    assert code == 1
    assert said.endswith("exists, and may be the rollback of an earlier move: name another with --rollback-json-file")


@pytest.mark.requirement("A1")
async def test_ten_thousand_partitions_are_one_request(controller: Controller, tmp_path: Path) -> None:
    controller.replicas = dict.fromkeys(range(10_000), (3,))
    entries = [{"topic": "orders", "partition": p, "replicas": [3]} for p in controller.replicas]
    code, said = await execute(controller, tmp_path, move=json.dumps({"version": 1, "partitions": entries}))
    assert (code, said) == (0, [f"orders-{p}: complete" for p in controller.replicas])
    [asked] = [each for each in controller.asked if isinstance(each, AlterPartitionReassignmentsRequest)]
    assert len(asked.partitions) == 10_000
