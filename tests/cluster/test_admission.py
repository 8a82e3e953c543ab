"""Permissions to see and to begin moves: an embedded controller with an authorizer on ZooKeeper, and brokers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio
from attrs import define, field

import klamm
from controller.node.admission import topic
from controller.node.service import ControllerService
from klamm.cli.demo.clusters import CONTROLLERS
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from tests.cluster.waiting import until
from tests.kit.service import connected, error_code
from transport.acls import CLUSTER, Operation, Resource
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
    ReassignablePartition,
    Request,
)
from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper
from transport.wire import Caller

BROKERS = (1, 2)
ORDERS = TopicPartition("orders", 0)
NOBODY, AUDITOR, OPERATOR = "nobody", "auditor", "operator"
LOOKS = (ListReassignmentsRequest(), DescribeReassignmentsRequest(), ListPartitionReassignmentsRequest())
ELECTION = ElectLeadersRequest(ElectionType.PREFERRED)


@define
class Permissions:
    """The permissions on the cluster and its topics; brokers have none before `let_brokers`."""

    by_client: dict[str, frozenset[Operation]] = field(
        factory=lambda: {
            AUDITOR: frozenset({Operation.DESCRIBE}),
            OPERATOR: frozenset({Operation.DESCRIBE, Operation.ALTER}),
        }
    )

    def __call__(self, caller: Caller, operation: Operation, resource: Resource) -> bool:
        """Decide, as an authorizer."""
        return operation in self.by_client.get(caller.client_id, ()) and resource in (CLUSTER, topic(ORDERS.topic))

    def let_brokers(self) -> None:
        """Let brokers do what they must."""
        self.by_client |= {f"broker-{id_}": frozenset({Operation.CLUSTER_ACTION}) for id_ in BROKERS}


async def ask(service: ControllerService, client_id: str, request: Request[object]) -> ErrorCode:
    """Ask over TCP; return the error that the whole request is answered with."""
    async with connected(service, client_id) as connection:
        return await error_code(connection, request)


async def topic_error(service: ControllerService, client_id: str, request: DeleteTopicsRequest) -> ErrorCode:
    """Ask over TCP; return the error of the one topic."""
    async with connected(service, client_id) as connection:
        [outcome] = (await connection.call(request)).topics
        return outcome.error


async def is_told_in(log: Path, what: str) -> bool:
    return what in await trio.Path(log).read_text(encoding="utf-8")


async def cluster_of(service: ControllerService, *topics: str) -> MetadataResponse:
    answer = await service.answer(MetadataRequest(topics))
    assert isinstance(answer, MetadataResponse)
    return answer


async def has_brokers(service: ControllerService) -> bool:
    return service.is_active and len((await cluster_of(service)).brokers) == len(BROKERS)


async def is_led(store: MetadataStore) -> bool:
    return await store.read([paths.partition_state(ORDERS)]) != [None]


async def has_moved(service: ControllerService) -> bool:
    [state] = (await cluster_of(service, ORDERS.topic)).partitions
    return state.replicas == (2,)


@pytest.mark.requirement("B4")
async def test_who_may_not_describe_or_alter_the_cluster_is_told_so(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/admission"
    config = klamm.ControllerConfig(CONTROLLERS[0], zookeeper_connect=address)
    move = AlterPartitionReassignmentsRequest((ReassignablePartition(*ORDERS, (2,)),))
    refused, unauthorized = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    async with (
        open_zookeeper(address) as store,
        stopping(ProcessCluster(store, tmp_path, address)) as cluster,
        trio.open_nursery() as nursery,
    ):
        permissions = Permissions()
        service: ControllerService = await nursery.start(partial(klamm.run, config, authorizer=permissions))
        cluster.start_brokers(BROKERS)
        await until(partial(has_brokers, service))
        await service.answer(CreateTopicsRequest((NewTopic(ORDERS.topic, 1, 1, ((1,),)),)))
        await until(partial(is_led, store))

        before = await store.read([paths.topic(ORDERS.topic), paths.partition_state(ORDERS)])
        assert {await ask(service, NOBODY, request) for request in (*LOOKS, move, ELECTION)} == {refused}
        assert {await ask(service, AUDITOR, request) for request in LOOKS} == {ErrorCode.NONE}
        assert {await ask(service, AUDITOR, request) for request in (move, ELECTION)} == {refused}
        assert await store.read([paths.topic(ORDERS.topic), paths.partition_state(ORDERS)]) == before
        deletion = DeleteTopicsRequest((ORDERS.topic,))
        assert {await topic_error(service, who, deletion) for who in (NOBODY, OPERATOR)} == {unauthorized}

        # A broker that may not ask for its ISRs says so, and asks until it may.
        assert {await ask(service, OPERATOR, request) for request in (*LOOKS, move)} == {ErrorCode.NONE}
        await until(partial(is_told_in, tmp_path / "1.log", "needs ClusterAction on the cluster"))
        assert not await has_moved(service)
        permissions.let_brokers()
        await until(partial(has_moved, service))
        nursery.cancel_scope.cancel()
