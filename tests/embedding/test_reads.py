"""Reads are answered while an event takes long; whatever decides waits for its turn."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from actors import EventQueue
from controller.channels.broker_channels import BrokerChannels
from controller.events import (
    ControllerEvent,
    PartitionModifications,
    ReassignmentProgress,
    RequestEvent,
    TopicChange,
)
from controller.model.election_results import Won
from controller.model.facts import LeadershipsWritten, TopicWritten
from controller.node import dispatch, reads
from controller.node.contact import Contact
from controller.node.office import Office
from controller.node.reads import DESCRIBED_AT_ONCE, Reads
from controller.node.round_runner import RoundRunner
from controller.node.service import ControllerService
from controller.node.waiting_requests import PATIENCE_SECONDS, WaitingRequests
from controller.progress.poller import ProgressPoller
from tests.controller.conftest import HOST, TP, Bench, bench, clock
from tests.kit.service import Controllers, hang, until
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    DescribeClusterRequest,
    DescribeReassignmentsRequest,
    DescribeReassignmentsResponse,
    ElectionType,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    MetadataResponse,
    Request,
)
from transport.metadata import LeaderAndIsr, ReplicaAssignment
from transport.store.formats import TopicZnode

__all__ = ["bench", "clock"]  # fixtures

READS = (
    DescribeClusterRequest(),
    DescribeReassignmentsRequest(),
    ListPartitionReassignmentsRequest(),
    ListReassignmentsRequest(),
    MetadataRequest(),
)


@pytest.fixture
def queue() -> EventQueue[ControllerEvent]:
    """Return a queue that is held, until a test runs it, and in which everything but requests takes forever."""
    return EventQueue(answer_in_turn, is_barrier=attrgetter("is_barrier"))


async def answer_in_turn(event: ControllerEvent) -> None:
    if not isinstance(event, RequestEvent):
        await trio.sleep_forever()
    else:
        event.reply.set("in its turn")


@pytest.fixture
def busy(bench: Bench, queue: EventQueue[ControllerEvent], monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Return the answers of an office whose queue is held by the loss of a broker."""
    monkeypatch.setattr(RoundRunner, "event", "BrokerChange")

    channels, progress = cast("BrokerChannels", None), cast("ProgressPoller", None)
    office = Office(Won(1, 1), bench.context, channels, bench.runner, progress, Contact(bench.runner.store, 1000.0))
    office.is_loaded = True
    return Reads(WaitingRequests(queue).answer, lambda: office, HOST)


def begin_read(busy: Reads, nursery: trio.Nursery) -> list[object]:
    """Begin to read metadata; return the list that will have the answer."""
    answers: list[object] = []

    async def read() -> None:
        answers.append(await busy.answer(MetadataRequest()))

    nursery.start_soon(read)
    return answers


async def require_waiting(busy: Reads, request: Request[object]) -> None:
    """Fail unless a request waits for its turn."""
    with trio.move_on_after(100) as patience:
        await busy.answer(request)
    assert patience.cancelled_caught


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("request_", READS, ids=lambda each: type(each).__name__)
async def test_a_read_does_not_wait_for_an_event_that_takes_long(
    bench: Bench, busy: Reads, autojump_clock: MockClock, request_: Request[object]
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    began = trio.current_time()
    with trio.fail_after(10):
        await busy.answer(request_)
    assert trio.current_time() - began == pytest.approx(PATIENCE_SECONDS)


async def test_what_is_answered_is_what_has_been_applied(bench: Bench, busy: Reads, autojump_clock: MockClock) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    bench.context.apply(LeadershipsWritten([TP], [LeaderAndIsr(2, 1, (2, 3), 1, 1)]))
    with trio.fail_after(10):
        answer = await busy.answer(MetadataRequest())
    assert isinstance(answer, MetadataResponse)
    assert [(state.leader, state.isr) for state in answer.partitions] == [(2, (2, 3))]


async def test_whatever_decides_waits(bench: Bench, busy: Reads, autojump_clock: MockClock) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    await require_waiting(busy, ElectLeadersRequest(ElectionType.PREFERRED))


async def test_a_move_that_has_no_identity_yet_is_not_shown(
    bench: Bench, busy: Reads, autojump_clock: MockClock
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    assignment = ReplicaAssignment((4, 1, 2, 3), (4,), (3,))
    bench.context.apply(TopicWritten("orders", TopicZnode({0: assignment}, "id"), 1))
    await require_waiting(busy, ListReassignmentsRequest(timeout_ms=1_000_000))


@pytest.mark.parametrize("event", ["ReplicasDeleted", "TopicsDeleted"])
async def test_topics_may_be_seen_as_they_go(
    bench: Bench, busy: Reads, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    monkeypatch.setattr(RoundRunner, "event", event)
    with trio.fail_after(10):
        assert isinstance(await busy.answer(MetadataRequest()), MetadataResponse)


async def test_a_read_keeps_its_place_while_small_events_follow_one_another(
    bench: Bench,
    busy: Reads,
    queue: EventQueue[ControllerEvent],
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    nursery: trio.Nursery,
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    monkeypatch.setattr(RoundRunner, "event", "TopicDeletion")
    answers = begin_read(busy, nursery)
    await trio.sleep(PATIENCE_SECONDS / 2)
    queue.tell(ReassignmentProgress(), later=True)
    await trio.sleep(10 * PATIENCE_SECONDS)
    nursery.start_soon(queue.run)
    await trio.sleep(PATIENCE_SECONDS)
    assert answers == ["in its turn"]


async def test_a_read_waits_for_topics_whose_creation_has_been_answered(
    bench: Bench,
    busy: Reads,
    queue: EventQueue[ControllerEvent],
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    monkeypatch.setattr(RoundRunner, "event", "BrokerChange")
    queue.tell(TopicChange())
    await require_waiting(busy, MetadataRequest())


async def test_a_read_is_tried_again_until_what_is_known_may_be_shown(
    bench: Bench, busy: Reads, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    monkeypatch.setattr(RoundRunner, "event", "TopicDeletion")
    answers = begin_read(busy, nursery)
    await trio.sleep(10 * PATIENCE_SECONDS)
    assert answers == []
    monkeypatch.setattr(RoundRunner, "event", "TopicsDeleted")
    await trio.sleep(2 * PATIENCE_SECONDS)
    assert [type(answer) for answer in answers] == [MetadataResponse]


async def test_a_deletion_is_not_seen_halfway(
    bench: Bench, busy: Reads, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    monkeypatch.setattr(RoundRunner, "event", "TopicDeletion")
    await require_waiting(busy, ListReassignmentsRequest(timeout_ms=1_000_000))


async def test_what_cannot_be_answered_at_once_waits_for_its_turn(
    bench: Bench, busy: Reads, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    monkeypatch.setattr(bench.runner, "context", None)

    def broken(*_: object) -> None:
        raise KeyError(TP)

    monkeypatch.setattr(dispatch, "rounds_for", broken)
    await require_waiting(busy, MetadataRequest())


async def test_nothing_is_read_before_all_is_known(bench: Bench, busy: Reads, autojump_clock: MockClock) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    cast("Any", busy.office()).is_loaded = False
    await require_waiting(busy, MetadataRequest())


async def test_without_an_office_a_read_waits(busy: Reads, autojump_clock: MockClock) -> None:
    del autojump_clock
    await require_waiting(Reads(busy.in_turn, lambda: None, HOST), MetadataRequest())


async def test_a_read_waits_for_the_chunk_that_is_being_committed(
    bench: Bench, busy: Reads, autojump_clock: MockClock
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    began = trio.current_time()
    async with trio.open_nursery() as nursery, bench.runner.turn:
        nursery.start_soon(busy.answer, MetadataRequest())
        await trio.sleep(50 * PATIENCE_SECONDS)
        assert bench.runner.turn.statistics().tasks_waiting == 1
    assert trio.current_time() - began == pytest.approx(50 * PATIENCE_SECONDS)


async def test_what_is_known_is_looked_at_again_when_the_chunk_is_committed(
    bench: Bench, busy: Reads, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))
    async with trio.open_nursery() as nursery, bench.runner.turn:
        nursery.start_soon(require_waiting, busy, MetadataRequest())
        await trio.sleep(2 * PATIENCE_SECONDS)
        monkeypatch.setattr(RoundRunner, "event", "TopicDeletion")


async def test_what_is_refused_is_refused_at_once(
    bench: Bench, busy: Reads, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    del autojump_clock
    await bench.start((1, 2, 3))

    def refusing(*_: object) -> None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    monkeypatch.setattr(dispatch, "rounds_for", refusing)
    with trio.fail_after(10), pytest.raises(ApiError, match="no"):
        await busy.answer(MetadataRequest())


async def test_moves_are_described_a_few_at_a_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "DESCRIBED_AT_ONCE", 2)
    assert DESCRIBED_AT_ONCE > 2
    await bench.start(*[(1, 2, 3)] * 5)
    for tp in bench.context.partitions():
        await bench.move(tp, (4, 1, 2))
    sizes = []

    async def in_turn(request: Request[object], _early: object) -> object:
        assert isinstance(request, DescribeReassignmentsRequest)
        sizes.append(None if request.reassignments is None else len(request.reassignments))
        return await bench.ask(request, DescribeReassignmentsResponse)

    office = cast("Office", bench)
    described = await Reads(in_turn, lambda: office, HOST).describe_moves(DescribeReassignmentsRequest())
    assert sizes == [2, 2, 1]
    assert described == await bench.ask(DescribeReassignmentsRequest(), DescribeReassignmentsResponse)
    keys = [(move.topic, move.partition) for move in described.reassignments]
    assert keys == sorted(bench.context.partitions())
    nothing = await Reads(in_turn, lambda: office, HOST).describe_moves(DescribeReassignmentsRequest(()))
    assert nothing.reassignments == ()
    monkeypatch.setattr(reads, "DESCRIBED_AT_ONCE", 5)
    await Reads(in_turn, lambda: office, HOST).describe_moves(DescribeReassignmentsRequest())
    assert sizes[3:] == [0, None]


async def test_a_service_whose_event_hangs_tells_what_it_knows(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service: ControllerService = await controllers.start_active()
    await until(lambda: service.readiness().is_ready and service.is_idle)
    monkeypatch.setattr(reads, "READABLE_EVENTS", {"PartitionModifications"})
    await hang(service, monkeypatch, PartitionModifications("orders"))
    with trio.fail_after(10):
        assert isinstance(await service.answer(MetadataRequest()), MetadataResponse)


async def test_a_standby_refuses_at_once(controllers: Controllers) -> None:
    await controllers.start_active()
    standby = await controllers.start(1002)
    with pytest.raises(ApiError) as refusal:
        await standby.answer(MetadataRequest())
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER
