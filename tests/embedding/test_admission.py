"""A running controller's answers to clients without permission, of another controller, or with too short a timeout."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from controller.admin.client import AdminClient
from controller.events import PartitionModifications
from controller.node.admission import NEEDED, Authorizer, allow_all
from controller.node.service import ControllerService
from tests.kit.service import Controllers, connected, error_code, hang, until
from transport.acls import CLUSTER, Operation, Resource, ResourceType
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    APIS,
    AllocateProducerIdsRequest,
    AlterConfigsResource,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ApiVersionsRequest,
    ChangeRolloutRequest,
    CommitTraceRequest,
    ConfigResource,
    ConfigResourceType,
    ControlledShutdownRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeReassignmentsRequest,
    DescribeRolloutMovesRequest,
    DescribeRolloutsRequest,
    ElectionType,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    MetadataResponse,
    NewPartitions,
    NewTopic,
    Request,
    RolloutOrder,
    StartRolloutRequest,
    UploadRolloutRequest,
)
from transport.metadata import ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Create
from transport.wire import Caller, Connection

DESCRIBING = (ListReassignmentsRequest(), DescribeReassignmentsRequest(), ListPartitionReassignmentsRequest())
BROKER = ConfigResource(ConfigResourceType.BROKER, "")
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "orders")
ORDERS = Resource(ResourceType.TOPIC, "orders")

WHOLE: dict[Request[Any], Operation] = {
    AlterPartitionReassignmentsRequest(()): Operation.ALTER,
    AllocateProducerIdsRequest(1, 1): Operation.CLUSTER_ACTION,
    AlterPartitionRequest(1, 1, ()): Operation.CLUSTER_ACTION,
    CommitTraceRequest(0, 0): Operation.DESCRIBE,
    ControlledShutdownRequest(1, 1): Operation.CLUSTER_ACTION,
    ChangeRolloutRequest("monday", RolloutOrder.PAUSE): Operation.ALTER,
    StartRolloutRequest("monday", "digest", 0): Operation.ALTER,
    UploadRolloutRequest("monday", "digest", 0, ()): Operation.ALTER,
    DescribeRolloutMovesRequest("monday"): Operation.DESCRIBE,
    DescribeRolloutsRequest(): Operation.DESCRIBE,
    DescribeClusterRequest(): Operation.DESCRIBE,
    **dict.fromkeys(DESCRIBING, Operation.DESCRIBE),
    ElectLeadersRequest(ElectionType.PREFERRED): Operation.ALTER,
}
"""Requests that are operations on the cluster."""

BY_ITEM: dict[Request[Any], tuple[Operation, Resource]] = {
    CreatePartitionsRequest((NewPartitions("orders", 2),)): (Operation.ALTER, ORDERS),
    CreateTopicsRequest((NewTopic("orders", 1, 1),)): (Operation.CREATE, ORDERS),
    DeleteTopicsRequest(("orders",)): (Operation.DELETE, ORDERS),
    DescribeConfigsRequest((BROKER,)): (Operation.DESCRIBE_CONFIGS, CLUSTER),
    DescribeConfigsRequest((TOPIC,)): (Operation.DESCRIBE_CONFIGS, ORDERS),
    IncrementalAlterConfigsRequest((AlterConfigsResource(BROKER, ()),)): (Operation.ALTER_CONFIGS, CLUSTER),
    IncrementalAlterConfigsRequest((AlterConfigsResource(TOPIC, ()),)): (Operation.ALTER_CONFIGS, ORDERS),
    MetadataRequest(("orders",)): (Operation.DESCRIBE, ORDERS),
}
"""Requests each of whose items is an operation on a resource."""


@asynccontextmanager
async def asking(
    controllers: Controllers, authorizer: Authorizer = allow_all, *, client_id: str = "test"
) -> AsyncIterator[tuple[ControllerService, Connection]]:
    """Run a controller and connect to it once it is ready."""
    service = await controllers.start(authorizer=authorizer)
    await until(lambda: service.readiness().is_ready)
    async with connected(service, client_id) as connection:
        yield service, connection


def name_of(request: Request[Any]) -> str:
    return type(request).__name__


def error_of(response: object) -> ErrorCode:
    """Return the error of a response's one item."""
    if isinstance(response, MetadataResponse):
        [refused] = response.refused
        return refused.error
    outcomes: Any = getattr(response, "topics", ()) or getattr(response, "resources", ())
    [error] = [outcome.error for outcome in outcomes]
    assert isinstance(error, ErrorCode)
    return error


async def test_every_request_that_is_answered_is_in_the_table(controllers: Controllers) -> None:
    async with asking(controllers) as (_, connection):
        offered = {api.api_key for api in (await connection.call(ApiVersionsRequest())).apis}
    answered = {api.request for api in APIS if api.key in offered}
    assert answered - {ApiVersionsRequest} == set(NEEDED)
    assert {type(request) for request in (*WHOLE, *BY_ITEM)} == set(NEEDED), "each is tried below"


def test_the_docs_have_the_same_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    _, section = page.split("## Who may do what")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    needed = {request.__name__.removesuffix("Request"): rule.operation.value for request, rule in NEEDED.items()}
    assert {request: operation for request, operation, _ in rows[2:]} == needed


@pytest.mark.requirement("B4")
async def test_who_may_do_nothing_is_refused_everything_but_how_to_ask(controllers: Controllers) -> None:
    asked: list[tuple[Caller, Operation, Resource]] = []

    def deny_all(caller: Caller, operation: Operation, resource: Resource) -> bool:
        asked.append((caller, operation, resource))
        return False

    async with asking(controllers, deny_all, client_id="eve") as (service, connection):
        for request, operation in WHOLE.items():
            asked.clear()
            assert await error_code(connection, request) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED, name_of(request)
            assert asked == [(Caller("eve", "127.0.0.1"), operation, CLUSTER)]
        refusals = {
            ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
        for request, (operation, resource) in BY_ITEM.items():
            asked.clear()
            assert error_of(await connection.call(request)) is refusals[resource.type], name_of(request)
            assert asked[-1] == (Caller("eve", "127.0.0.1"), operation, resource)
        told = await connection.call(MetadataRequest(()))
        assert told.controller == service.endpoint
        with pytest.raises(ApiError, match="client 'eve' needs Alter on the cluster: ask who runs the cluster"):
            await connection.call(ElectLeadersRequest(ElectionType.PREFERRED))


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("request_", WHOLE, ids=name_of)
async def test_who_may_do_it_to_the_cluster_is_let_in(controllers: Controllers, request_: Request[Any]) -> None:
    def only(_: Caller, operation: Operation, resource: Resource) -> bool:
        return (operation, resource) == (WHOLE[request_], CLUSTER)

    async with asking(controllers, only) as (_, connection):
        assert await error_code(connection, request_) is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def only_mine(_: Caller, __: Operation, resource: Resource) -> bool:
    """Let everybody do everything to topics that are called `mine`-something, and nothing else."""
    return resource.type is ResourceType.TOPIC and resource.name.startswith("mine")


@pytest.mark.requirement("B4")
async def test_what_is_asked_of_some_topics_is_done_though_it_is_refused_for_others(controllers: Controllers) -> None:
    async with asking(controllers, only_mine) as (_, connection):
        names = ("mine", "yours")
        refused, unknown = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        created = await connection.call(CreateTopicsRequest(tuple(NewTopic(name, 1, 1, ((1,),)) for name in names)))
        answers = {outcome.name: outcome.error for outcome in created.topics}
        assert (answers["mine"], answers["yours"]) == (ErrorCode.BROKER_NOT_AVAILABLE, refused)
        grown = await connection.call(CreatePartitionsRequest(tuple(NewPartitions(name, 2) for name in names)))
        assert [(outcome.name, outcome.error) for outcome in grown.topics] == [("mine", unknown), ("yours", refused)]
        deleted = await connection.call(DeleteTopicsRequest(names))
        assert [(outcome.name, outcome.error) for outcome in deleted.topics] == [("mine", unknown), ("yours", refused)]
        resources = tuple(ConfigResource(ConfigResourceType.TOPIC, name) for name in names)
        described = await connection.call(DescribeConfigsRequest((*resources, BROKER)))
        assert [(outcome.resource, outcome.error) for outcome in described.resources] == [
            (resources[0], unknown),
            (resources[1], refused),
            (BROKER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ]


async def test_who_may_create_topics_in_the_cluster_may_create_each(controllers: Controllers) -> None:
    def creator(_: Caller, operation: Operation, resource: Resource) -> bool:
        return (operation, resource) == (Operation.CREATE, CLUSTER)

    async with asking(controllers, creator) as (_, connection):
        created = await connection.call(CreateTopicsRequest((NewTopic("orders", 1, 1, ((1,),)),)))
        assert error_of(created) is ErrorCode.BROKER_NOT_AVAILABLE
        deleted = await connection.call(DeleteTopicsRequest(("orders",)))
        assert error_of(deleted) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.requirement("B4")
async def test_topics_that_may_not_be_described_are_left_out_of_all_and_refused_if_named(
    controllers: Controllers,
) -> None:
    async with asking(controllers, only_mine) as (service, connection):
        topics = ("mine", "mine-too", "yours")
        znodes = {name: formats.TopicZnode({0: ReplicaAssignment((1,))}, f"id-{name}") for name in topics}
        creations = [Create(paths.topic(name), formats.encode_topic(znode)) for name, znode in znodes.items()]
        await service.store.multi(creations)
        with trio.fail_after(10):
            while len((await service_topics(service)).partitions) < len(topics):
                await trio.sleep(0.001)
        everything = await connection.call(MetadataRequest())
        assert [state.topic for state in everything.partitions] == ["mine", "mine-too"]
        assert everything.refused == ()
        named = await connection.call(MetadataRequest(("mine", "yours", "nobodys")))
        assert [state.topic for state in named.partitions] == ["mine"]
        assert [(topic.name, topic.error) for topic in named.refused] == [
            ("yours", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            ("nobodys", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ]
        where = [(service.endpoint.host, service.endpoint.port)]
        admin = AdminClient(TcpNetwork(), where, None, 10)
        assert [state.topic for state in (await admin.read_metadata()).partitions] == ["mine", "mine-too"]
        with pytest.raises(ApiError, match="client 'admin' needs Describe on topic yours"):
            await admin.read_metadata(["mine", "yours"])
        seen = await admin.visibility({"yours": 3, "mine": 1})
        assert (seen.sees_all_topics, seen.hidden) == (False, {"yours": 3})
        assert "our principal needs Describe on all topics" in (seen.partial or "")


async def service_topics(service: ControllerService) -> MetadataResponse:
    answer = await service.answer(MetadataRequest())
    assert isinstance(answer, MetadataResponse)
    return answer


@pytest.mark.requirement("B4")
async def test_who_is_not_the_controller_says_so(controllers: Controllers) -> None:
    await controllers.start_active()
    standby = await controllers.start(1002)
    async with connected(standby) as connection:
        assert [await error_code(connection, each) for each in DESCRIBING] == [ErrorCode.NOT_CONTROLLER] * 3


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("request_", [ListReassignmentsRequest(None, 1), DescribeReassignmentsRequest(None, 1)])
async def test_a_controller_that_is_busy_for_too_long_says_so(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch, request_: Request[object]
) -> None:
    async with asking(controllers) as (service, connection):
        await hang(service, monkeypatch, PartitionModifications("orders"))
        assert await error_code(connection, request_) is ErrorCode.REQUEST_TIMED_OUT
