"""The admin client against scripted nodes, over TCP: the requests that it repeats, and those that it does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise

import pytest
import trio
from attrs import define, field
from msgspec.structs import replace

from controller.admin.active_controller import ClusterUnreachable, OutcomeUnknown
from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.client import AdminClient, open_klamm_admin
from tests.channels.scripted_broker import MemoryNetwork
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.kafka.volume import Volume
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    BrokerEndpoint,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    LogDir,
    LogDirReplica,
    MetadataRequest,
    MetadataResponse,
    PartitionError,
    ReassignablePartition,
)
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.kafka_office import encode_holder
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, Delete, MetadataStore, ensure_paths
from transport.wire import Handlers, UnsupportedApi, serve
from transport.wire.server import serve_stream

MOVE = ReassignablePartition("orders", 0, (4, 5, 6))
BEGUN = AlterPartitionReassignmentsResponse((PartitionError("orders", 0),))

Answer = Callable[[], Awaitable[object]]


@define
class FakeNode:
    """A controller that gives prepared answers, one after the other, to whatever is asked of reassignments."""

    answers: list[Answer | Exception | object]
    asked: int = 0
    brokers: tuple[BrokerEndpoint, ...] = ()
    port: int = field(default=0, init=False)

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Listen until cancelled."""
        async with trio.open_nursery() as nursery:
            self.port = await nursery.start(serve, TcpNetwork(), self.handlers(), "127.0.0.1", 0)
            task_status.started()

    async def serve_stream(self, stream: trio.abc.Stream) -> None:
        """Answer one connection."""
        await serve_stream(stream, self.handlers())

    def handlers(self) -> Handlers:
        return {
            MetadataRequest: self._metadata,
            AlterPartitionReassignmentsRequest: self._answer,
            ListPartitionReassignmentsRequest: self._answer,
            ElectLeadersRequest: self._answer,
        }

    async def _metadata(self, _: MetadataRequest) -> MetadataResponse:
        return MetadataResponse(BrokerEndpoint(1, "127.0.0.1", self.port), 1, self.brokers, ())

    async def _answer(self, _: object) -> object:
        answer = self.answers[self.asked]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return await answer() if callable(answer) else answer


async def silence() -> object:
    """Never answer."""
    return await trio.sleep_forever()


async def ask_to_move(
    node: FakeNode, nursery: trio.Nursery, within: float = 10.0
) -> AlterPartitionReassignmentsResponse:
    await nursery.start(node.serve)
    async with open_klamm_admin(bootstrap=[("127.0.0.1", node.port)], timeout=within) as admin:
        return await admin.alter_partition_reassignments([MOVE])


async def test_more_than_one_request_may_list_is_asked_for_in_several(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AlterPartitionReassignmentsRequest, "max_listed", 2)
    outcomes = [PartitionError("orders", number, ErrorCode.NONE, str(number)) for number in range(5)]
    answers = [AlterPartitionReassignmentsResponse(tuple(outcomes[at : at + 2])) for at in (0, 2, 4)]
    node = FakeNode(list(answers))
    await nursery.start(node.serve)
    async with open_klamm_admin(bootstrap=[("127.0.0.1", node.port)]) as admin:
        response = await admin.alter_partition_reassignments([replace(MOVE, partition=n) for n in range(5)])
    assert (response.partitions, node.asked) == (tuple(outcomes), 3)


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED])
async def test_what_nobody_began_is_asked_again(code: ErrorCode, nursery: trio.Nursery) -> None:
    node = FakeNode([ApiError(code, "not now"), BEGUN])
    assert await ask_to_move(node, nursery) == BEGUN
    assert node.asked == 2


@pytest.mark.parametrize(
    "answer", [silence, ApiError(ErrorCode.REQUEST_TIMED_OUT, "the office was lost")], ids=["silence", "cut off"]
)
async def test_a_change_whose_answer_is_lost_is_not_repeated(answer: Answer | Exception, nursery: trio.Nursery) -> None:
    node = FakeNode([answer, BEGUN])
    with pytest.raises(OutcomeUnknown, match="it may have been done or not: look before you ask again"):
        await ask_to_move(node, nursery, within=0.5)
    assert node.asked == 1


@pytest.mark.parametrize(("replaced_at", "seconds"), [(7.0, 10.0), (None, 60.0)])
@pytest.mark.usefixtures("autojump_clock")
async def test_a_change_waits_for_a_silent_controller_as_long_as_that_is_in_office(
    replaced_at: float | None, seconds: float, nursery: trio.Nursery
) -> None:
    paused, other = FakeNode([silence]), FakeNode([])
    network = MemoryNetwork(nursery, {1: paused.serve_stream, 2: other.serve_stream})
    async with MemoryZooKeeper(Host().now_ms).session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        await put_in_office(store, 1)
        if replaced_at is not None:
            nursery.start_soon(replace_later, store, replaced_at)
        with pytest.raises(OutcomeUnknown, match=r"did not answer.*; it may have been done or not"):
            await AdminClient(network, [], store, timeout=60.0).alter_partition_reassignments([MOVE])
    assert trio.current_time() == pytest.approx(seconds, abs=0.01)
    assert (paused.asked, other.asked) == (1, 0)


async def put_in_office(store: MetadataStore, controller_id: int) -> None:
    endpoint = formats.encode_controller_endpoint(BrokerEndpoint(controller_id, "here", controller_id))
    holder = formats.encode_controller(controller_id, 0)
    await store.multi([Create(paths.controller_endpoint(controller_id), endpoint), Create(paths.CONTROLLER, holder)])


async def replace_later(store: MetadataStore, seconds: float) -> None:
    """Let nobody be in office for a while, and then another one."""
    await trio.sleep(seconds - 4)
    await store.multi([Delete(paths.CONTROLLER)])
    await trio.sleep(4)
    await put_in_office(store, 2)


async def test_a_question_whose_answer_is_lost_is_asked_again(nursery: trio.Nursery) -> None:
    node = FakeNode(
        [ApiError(ErrorCode.REQUEST_TIMED_OUT, "the office was lost"), ListPartitionReassignmentsResponse(())]
    )
    await nursery.start(node.serve)
    async with open_klamm_admin(bootstrap=[("127.0.0.1", node.port)]) as admin:
        assert await admin.list_partition_reassignments() == ()
    assert node.asked == 2


async def test_a_refusal_is_final(nursery: trio.Nursery) -> None:
    node = FakeNode([ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you"), BEGUN])
    with pytest.raises(ApiError, match="not you"):
        await ask_to_move(node, nursery)
    assert node.asked == 1


@pytest.mark.requirement("B5")
async def test_a_broker_that_is_silent_holds_up_no_other(nursery: trio.Nursery) -> None:
    log_dir = LogDir("/data", ErrorCode.NONE, (LogDirReplica("orders", "id", 0, 120, 10, 0),))
    asked: list[object] = []

    async def answer(request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        asked.append(request.partitions)
        return DescribeLogDirsResponse((log_dir,))

    async def never(_: DescribeLogDirsRequest) -> object:
        return await silence()

    handlers: list[Handlers] = [{DescribeLogDirsRequest: answer}, {DescribeLogDirsRequest: never}, {}]
    serving = [partial(serve, TcpNetwork(), each, "127.0.0.1", 0) for each in handlers]
    ports: list[int] = [await nursery.start(each) for each in serving]
    node = FakeNode([], brokers=tuple(BrokerEndpoint(id_, "127.0.0.1", port) for id_, port in enumerate(ports, 1)))
    await nursery.start(node.serve)
    async with open_klamm_admin(bootstrap=[("127.0.0.1", node.port)], timeout=0.5) as admin:
        said = await admin.describe_log_dirs([2, 1, 3, 4], [TopicPartition("orders", 0)])
    assert list(said) == [2, 1, 3, 4]
    assert said[1] == BrokerLogDirs((log_dir,), volumes={log_dir.path: Volume()})
    assert [broker.fault for broker in said.values() if broker.fault] == [
        "broker 2 did not answer within 0.5 s",
        f"127.0.0.1:{ports[2]} does not offer DescribeLogDirs in versions 0 to 1",
        "broker 4 is not alive",
    ]
    assert asked == [(("orders", 0),)]


async def test_a_controller_that_heeds_no_order_is_told_of(nursery: trio.Nursery) -> None:
    node = FakeNode([ElectLeadersResponse(())])
    await nursery.start(node.serve)
    async with open_klamm_admin(bootstrap=[("127.0.0.1", node.port)]) as admin:
        with pytest.raises(UnsupportedApi, match="heeded none: upgrade it"):
            await admin.elect_leaders(ElectionType.PREFERRED, orders={TopicPartition("orders", 0): (3, 1, 2)})


class Nowhere:
    """A network on which nobody can be reached, and which says so late."""

    async def addresses(self, host: str) -> Sequence[str]:
        return [host]

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:  # noqa: ARG002
        await trio.sleep(1)
        raise OSError(f"no route to {host}:{port}")

    async def serve(self, *_: object, **__: object) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("ask", [AdminClient.find_controller, AdminClient.read_metadata, AdminClient.create_topics])
@pytest.mark.usefixtures("autojump_clock")
async def test_a_call_lasts_no_longer_than_its_timeout(ask: Callable[..., Awaitable[object]]) -> None:
    admin = AdminClient(Nowhere(), [("a", 1), ("b", 2)], None, timeout=7.0)
    arguments: Sequence[object] = [()] if ask is AdminClient.create_topics else []
    with pytest.raises(ClusterUnreachable, match="a:1, b:2"):
        await ask(admin, *arguments)
    assert trio.current_time() == pytest.approx(7.0, abs=0.01)


@pytest.mark.parametrize(
    ("znode", "said"),
    [
        (
            formats.encode_controller(2, 0),
            "Kafka's controller 2 is in office: ask its brokers, with --bootstrap-server",
        ),
        (encode_holder(2, 0), "no controller is active: start one with `klamm controller run`"),
        (None, "no controller is active"),
    ],
    ids=["Kafka's", "ours is dead", "nobody"],
)
@pytest.mark.usefixtures("autojump_clock")
async def test_a_controller_that_cannot_be_asked_is_named(znode: bytes | None, said: str) -> None:
    async with MemoryZooKeeper(Host().now_ms).session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        if znode is not None:
            await store.multi([Create(paths.CONTROLLER, znode)])
        with pytest.raises(ClusterUnreachable, match=said):
            await AdminClient(Nowhere(), [], store, timeout=5.0).find_controller()


@define
class Refusing(Nowhere):
    """A network on which nobody listens; `tried` has the times of the attempts."""

    tried: list[float] = field(factory=list)

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:  # noqa: ARG002
        await trio.lowlevel.checkpoint()
        self.tried.append(trio.current_time())
        raise ConnectionRefusedError(f"{host}:{port} refused")


@pytest.mark.usefixtures("autojump_clock")
async def test_a_controller_is_looked_for_at_growing_intervals_of_a_second_at_most() -> None:
    network = Refusing()
    with pytest.raises(ClusterUnreachable):
        await AdminClient(network, [("a", 1)], None, timeout=5.0).find_controller()
    pauses = [after - before for before, after in pairwise(network.tried)]
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.0, 1.0, 1.0])


@pytest.mark.usefixtures("autojump_clock")
async def test_requests_that_wait_for_a_controller_share_one_search() -> None:
    network = Refusing()
    admin = AdminClient(network, [("a", 1)], None, timeout=5.0)

    async def look_in_vain() -> None:
        with pytest.raises(ClusterUnreachable, match="a:1: nothing listens there"):
            await admin.find_controller()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(look_in_vain)
    assert network.tried == pytest.approx([0.0, 0.2, 0.6, 1.4, 2.4, 3.4, 4.4])


@pytest.mark.usefixtures("autojump_clock")
async def test_what_no_controller_takes_is_sent_again_at_growing_intervals(nursery: trio.Nursery) -> None:
    network = MemoryNetwork(nursery)
    async with MemoryZooKeeper(Host().now_ms).session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        await put_in_office(store, 1)
        with pytest.raises(ClusterUnreachable, match="no controller is active"):
            await AdminClient(network, [], store, timeout=5.0).alter_partition_reassignments([MOVE])
    assert trio.current_time() == pytest.approx(5.0)
    assert network.attempts == pytest.approx([0.0, 0.2, 0.6, 1.4, 2.4, 3.4, 4.4])
