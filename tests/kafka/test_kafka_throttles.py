"""Throttles of moves in clusters of Kafka's, which record nothing in topics and hide values that they do not know."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from attrs import define, field

from controller.admin import move_throttles, recorded_throttles
from controller.admin.active_controller import ClusterUnreachable
from controller.admin.kafka_admin import KafkaAdmin, open_kafka_admin
from controller.admin.kafka_cluster import open_kafka_cluster
from controller.admin.move_record import ListBefore, MoveRecord, RateBefore
from controller.admin.recorded_throttles import Lifted
from tests.kafka.scripted_nodes import HOST, Answer, ScriptedNodes, scripted_nodes
from transport.dynamic_configs import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from transport.kafka.messages.incremental_alter_configs_response import AlterConfigsResourceResponse
from transport.kafka.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from transport.kafka.schema import Message
from transport.messages import (
    UNTHROTTLED,
    AlterableConfig as Change,
    AlterConfigsResource as Changes,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
)
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.security.errors import AuthenticationFailed, TokenUnavailable
from transport.wire.errors import NoToken, Untrusted, WireError

TP = TopicPartition("orders", 0)
KNOWN = {LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE}
RATES = {LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE}
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


def _id(one: DescribeConfigsResource) -> tuple[DescribeConfigsResourceResult, ...]:
    is_broker = one.resource_type == BROKER and one.resource_name
    return (DescribeConfigsResourceResult("broker.id", one.resource_name),) if is_broker else ()


@define
class Settings:
    """The settings of a cluster, as Kafka's brokers take and tell them."""

    of: defaultdict[tuple[int, str], dict[str, str]] = field(factory=lambda: defaultdict(dict))
    is_old: bool = False
    """Whether appending to a list that is not there fails, and rates are not told, as in Kafka 2.4."""

    refused: set[tuple[int, str]] = field(factory=set)
    """What takes no changes."""

    def answers(self) -> dict[type[Message], Answer]:
        """Return what lets all brokers take and tell them."""
        return {kafka.DescribeConfigsRequest: self.describe, kafka.IncrementalAlterConfigsRequest: self.alter}

    def describe(self, request: kafka.DescribeConfigsRequest) -> kafka.DescribeConfigsResponse:
        """Tell settings, but no value of an unknown one."""
        told = (
            DescribeConfigsResult(0, None, one.resource_type, one.resource_name, (*_id(one), *self._told(one)))
            for one in request.resources
        )
        return kafka.DescribeConfigsResponse(results=tuple(told))

    def _told(self, one: DescribeConfigsResource) -> tuple[DescribeConfigsResourceResult, ...]:
        source = 1 if one.resource_type == TOPIC else 2
        known = KNOWN - RATES if self.is_old else KNOWN
        return tuple(
            DescribeConfigsResourceResult(
                name, value if name in known else None, config_source=source, is_sensitive=name not in known
            )
            for name, value in self.of[one.resource_type, one.resource_name].items()
        )

    def alter(self, request: kafka.IncrementalAlterConfigsRequest) -> kafka.IncrementalAlterConfigsResponse:
        """Take changes, but no unknown setting of a topic."""
        return kafka.IncrementalAlterConfigsResponse(responses=tuple(map(self._altered, request.resources)))

    def _altered(self, wanted: AlterConfigsResource) -> AlterConfigsResourceResponse:
        where = wanted.resource_type, wanted.resource_name
        if where in self.refused:
            return AlterConfigsResourceResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "refused", *where)
        if wanted.resource_type == TOPIC and not {one.name for one in wanted.configs} <= KNOWN:
            return AlterConfigsResourceResponse(ErrorCode.INVALID_CONFIG, "Unknown topic config name", *where)
        added = {one.name for one in wanted.configs if one.config_operation == ConfigOperation.APPEND}
        if self.is_old and not added <= self.of[where].keys():
            return AlterConfigsResourceResponse(ErrorCode.UNKNOWN_SERVER_ERROR, "is null", *where)
        for one in wanted.configs:
            self._alter(self.of[where], one)
        return AlterConfigsResourceResponse(0, None, *where)

    def _alter(self, own: dict[str, str], one: AlterableConfig) -> None:
        items = [item for item in own.get(one.name, "").split(",") if item]
        named = (one.value or "").split(",")
        match ConfigOperation(one.config_operation):
            case ConfigOperation.SET:
                own[one.name] = one.value or ""
            case ConfigOperation.DELETE:
                own.pop(one.name, None)
            case ConfigOperation.APPEND:
                # Kafka 2.8 takes a list that is not there for one with an empty item.
                own[one.name] = ",".join([*(items or [""]), *(item for item in named if item not in items)])
            case ConfigOperation.SUBTRACT:
                own[one.name] = ",".join(item for item in items if item not in named)


@asynccontextmanager
async def clients(settings: Settings) -> AsyncIterator[tuple[KafkaAdmin, ScriptedNodes]]:
    """Open a client of three brokers with these settings; a partition is on the first two."""
    async with scripted_nodes(1, 2, 3, answers=settings.answers()) as cluster:
        cluster.show("orders", (1, 2))
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            yield admin, cluster


async def begin(admin: KafkaAdmin, rate: int, record: MoveRecord, *replicas: int) -> MoveRecord:
    """Throttle the move of the partition to replicas, and return the record."""
    states = (await admin.read_metadata()).partitions
    wanted = await recorded_throttles.throttling(admin, states, {TP: replicas}, rate, record)
    await move_throttles.alter(admin, wanted.changes)
    return wanted.record


@pytest.mark.parametrize("is_old", [False, True])
async def test_a_throttle_is_set_and_lifted_and_what_was_before_returns(is_old: bool) -> None:
    settings = Settings(is_old=is_old)
    before = {} if is_old else {LEADER_THROTTLED_RATE: "77"}
    settings.of[BROKER, "1"].update(before)
    settings.of[TOPIC, "orders"][LEADER_THROTTLED_REPLICAS] = "0:1,5:1"
    async with clients(settings) as (admin, _):
        record = await begin(admin, 4_000, MoveRecord(), 3, 1)
        assert settings.of[TOPIC, "orders"] == {
            LEADER_THROTTLED_REPLICAS: "0:1,5:1,0:2",
            FOLLOWER_THROTTLED_REPLICAS: "0:3",
        }
        rates = [settings.of[BROKER, name].get(LEADER_THROTTLED_RATE) for name in ("1", "2", "3")]
        assert rates == ["4000", "4000", None]
        assert settings.of[BROKER, "3"][FOLLOWER_THROTTLED_RATE] == "4000"
        assert record.lists["orders", LEADER_THROTTLED_REPLICAS] == ListBefore("0:1,5:1", frozenset({(0, 2)}))
        assert record.rates[1, LEADER_THROTTLED_RATE] == RateBefore(None if is_old else "77", "4000")
    # Another process lifts it.
    async with clients(settings) as (admin, _):
        assert await recorded_throttles.lift(admin, [TP], record) == Lifted(is_changed=True, left=None)
        assert await recorded_throttles.lift(admin, [TP], record) == Lifted(is_changed=False, left=None)
    assert settings.of[TOPIC, "orders"] == {LEADER_THROTTLED_REPLICAS: "0:1,5:1"}
    assert [settings.of[BROKER, name] for name in ("1", "2", "3")] == [before, {}, {}]


async def test_a_move_that_is_throttled_again_has_what_was_before_the_first_time() -> None:
    settings = Settings()
    settings.of[BROKER, "1"][LEADER_THROTTLED_RATE] = "77"
    async with clients(settings) as (admin, _):
        first = await begin(admin, 4_000, MoveRecord(), 3, 1)
        second = await begin(admin, 9_000, first, 3, 1)
        assert second.lists == first.lists
        assert second.rates[1, LEADER_THROTTLED_RATE] == RateBefore("77", "9000")
        assert settings.of[BROKER, "1"][LEADER_THROTTLED_RATE] == "9000"
        # The broker's own record of the rate before may be gone.
        for name in [name for name in settings.of[BROKER, "1"] if name not in KNOWN]:
            del settings.of[BROKER, "1"][name]
        third = await begin(admin, 5_000, second, 3, 1)
        for name in [name for name in settings.of[BROKER, "1"] if name not in KNOWN]:
            del settings.of[BROKER, "1"][name]
        assert (await recorded_throttles.lift(admin, [TP], third)).left is None
    assert settings.of[BROKER, "1"] == {LEADER_THROTTLED_RATE: "77"}


async def test_what_an_earlier_execution_added_stays_its_own() -> None:
    settings = Settings()
    settings.of[TOPIC, "orders"][LEADER_THROTTLED_REPLICAS] = "0:1,5:1"
    earlier = MoveRecord(lists={("orders", LEADER_THROTTLED_REPLICAS): ListBefore("5:1", frozenset({(0, 1)}))})
    async with clients(settings) as (admin, _):
        record = await begin(admin, 4_000, earlier, 3, 1)
    assert record.lists["orders", LEADER_THROTTLED_REPLICAS] == ListBefore("5:1", frozenset({(0, 1), (0, 2)}))


async def test_what_was_recorded_and_never_done_is_recorded_anew() -> None:
    settings = Settings()
    stale = MoveRecord(
        lists={("orders", LEADER_THROTTLED_REPLICAS): ListBefore("9:9", frozenset({(0, 1)}))},
        rates={(1, LEADER_THROTTLED_RATE): RateBefore("55", "66")},
    )
    settings.of[BROKER, "1"][LEADER_THROTTLED_RATE] = "77"
    async with clients(settings) as (admin, _):
        record = await begin(admin, 4_000, stale, 3, 1)
    assert record.lists["orders", LEADER_THROTTLED_REPLICAS] == ListBefore(None, frozenset({(0, 1), (0, 2)}))
    assert record.rates[1, LEADER_THROTTLED_RATE] == RateBefore("77", "4000")


async def test_a_dead_broker_keeps_its_rate_until_it_is_back() -> None:
    settings = Settings()
    async with clients(settings) as (admin, cluster):
        record = await begin(admin, 4_000, MoveRecord(), 3, 1)
        dead = cluster.nodes.pop(3)
        first = await recorded_throttles.lift(admin, [TP], record)
        assert first.left is not None
        assert first.left == MoveRecord(rates={(3, FOLLOWER_THROTTLED_RATE): RateBefore(None, "4000")})
        assert (first.is_changed, first.absent) == (True, (3,))
        assert settings.of[BROKER, "3"][FOLLOWER_THROTTLED_RATE] == "4000"
        cluster.nodes[3] = dead
        assert await recorded_throttles.lift(admin, [TP], first.left) == Lifted(is_changed=True, left=None)
    assert [settings.of[BROKER, name] for name in ("1", "2", "3")] == [{}, {}, {}]
    assert settings.of[TOPIC, "orders"] == {}


async def test_brokers_are_throttled_while_other_moves_need_it() -> None:
    settings = Settings()
    settings.of[BROKER, "1"][LEADER_THROTTLED_RATE] = "77"
    async with clients(settings) as (admin, cluster):
        cluster.show("orders", (1, 2), (1, 2))
        record = await begin(admin, 4_000, MoveRecord(), 3, 1)
        settings.of[TOPIC, "orders"][LEADER_THROTTLED_REPLICAS] += ",1:1"
        other = OngoingPartitionReassignment(1, (3, 1), (3,), ())
        ongoing = kafka.ListPartitionReassignmentsResponse(topics=(OngoingTopicReassignment("orders", (other,)),))
        cluster.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = ongoing
        first = await recorded_throttles.lift(admin, [TP], record)
        assert first.in_use == (1,)
        assert settings.of[TOPIC, "orders"] == {LEADER_THROTTLED_REPLICAS: "1:1"}
        assert settings.of[BROKER, "1"][LEADER_THROTTLED_RATE] == "4000"
        cluster.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = kafka.ListPartitionReassignmentsResponse()
        assert first.left is not None
        assert await recorded_throttles.lift(admin, [TP], first.left) == Lifted(is_changed=True, left=None)
    assert [settings.of[BROKER, name] for name in ("1", "2", "3")] == [{LEADER_THROTTLED_RATE: "77"}, {}, {}]


async def test_a_rate_that_could_not_be_restored_is_not_replaced() -> None:
    settings = Settings(is_old=True)
    settings.of[BROKER, "1"][LEADER_THROTTLED_RATE] = "77"
    async with clients(settings) as (admin, _):
        with pytest.raises(ApiError, match="broker 1 has a rate of its own that its release of Kafka does not tell"):
            await begin(admin, 4_000, MoveRecord(), 3, 1)
    assert settings.of[BROKER, "1"] == {LEADER_THROTTLED_RATE: "77"}


async def test_a_topic_with_a_throttle_for_all_replicas_keeps_it() -> None:
    settings = Settings()
    settings.of[TOPIC, "orders"][LEADER_THROTTLED_REPLICAS] = "*"
    async with clients(settings) as (admin, _):
        record = await begin(admin, 4_000, MoveRecord(), 3, 1)
        assert (await recorded_throttles.lift(admin, [TP], record)).left is None
    assert settings.of[TOPIC, "orders"] == {LEADER_THROTTLED_REPLICAS: "*"}


async def test_without_a_record_no_list_changes() -> None:
    settings = Settings()
    async with clients(settings) as (admin, _):
        await begin(admin, 4_000, MoveRecord(), 3, 1)
        named = dict(settings.of[TOPIC, "orders"])
        assert await recorded_throttles.lift(admin, [TP], MoveRecord()) == Lifted(is_changed=True, left=None)
    assert settings.of[TOPIC, "orders"] == named
    assert [settings.of[BROKER, name] for name in ("1", "2", "3")] == [{}, {}, {}]


async def test_a_brokers_settings_are_asked_for_and_changed_at_that_broker() -> None:
    async with clients(Settings()) as (admin, cluster):
        second, dead = ConfigResource(BROKER, "2"), ConfigResource(BROKER, "9")
        told = await admin.describe_configs([second, dead])
        change = Change(LEADER_THROTTLED_RATE, ConfigOperation.SET, "5")
        done = await admin.incremental_alter_configs([Changes(second, (change,)), Changes(dead, (change,))])
    absent = "broker 9 is not alive: Kafka takes and tells the settings of a broker only at this broker"
    expected = [(ErrorCode.NONE, ""), (ErrorCode.BROKER_NOT_AVAILABLE, absent)]
    assert [(one.error, one.message) for one in told] == expected
    assert [(one.error, one.message) for one in done] == expected
    for kind in (kafka.DescribeConfigsRequest, kafka.IncrementalAlterConfigsRequest):
        assert [len(node.questions(kind)) for node in cluster.nodes.values()] == [0, 1, 0]


@pytest.mark.parametrize("name", ["orders", ""])
async def test_other_settings_are_any_brokers(name: str) -> None:
    resource = ConfigResource(TOPIC if name else BROKER, name)
    async with clients(Settings()) as (admin, cluster):
        [told] = await admin.describe_configs([resource])
        assert told.resource == resource
        assert sum(len(node.questions(kafka.DescribeConfigsRequest)) for node in cluster.nodes.values()) == 1


async def test_the_throttle_of_a_replica_that_stays_is_known() -> None:
    settings = Settings()
    settings.of[TOPIC, "orders"][FOLLOWER_THROTTLED_REPLICAS] = "0:2,0:3"
    for broker in ("2", "3"):
        settings.of[BROKER, broker][FOLLOWER_THROTTLED_RATE] = f"{broker}000"
    row = OngoingPartitionReassignment(0, (3, 1, 2, 4), (3,), (4,))
    listed = kafka.ListPartitionReassignmentsResponse(topics=(OngoingTopicReassignment("orders", (row,)),))
    async with scripted_nodes(1, 2, 3, 4, answers=settings.answers()) as nodes:
        nodes.show("orders", (1, 2, 4, 3), isr=(1, 2, 4))
        nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = listed
        async with open_kafka_admin(TcpNetwork(), nodes.bootstrap) as admin:
            [move] = (await admin.describe_reassignments()).values()
    assert {item.broker: item.throttle for item in move.progress} == {3: 3_000, 1: UNTHROTTLED, 2: 2_000}


class Unresolved(TcpNetwork):
    """The real network, on which the name of one node cannot be found, or another fault keeps connections from it."""

    def __init__(self, port: int, fault: Exception | None = None) -> None:
        super().__init__()
        self._port = port
        self._fault = fault or socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        """Connect, as the real network does."""
        if port == self._port:
            raise self._fault
        return await super().connect(host, port, address)


async def test_a_broker_with_a_name_that_does_not_resolve_yet_holds_no_setting_of_topics_up() -> None:
    settings = Settings()
    settings.of[TOPIC, "orders"][LEADER_THROTTLED_REPLICAS] = "0:1"
    gone = (Change(LEADER_THROTTLED_REPLICAS, ConfigOperation.DELETE),)
    async with scripted_nodes(1, 2, answers=settings.answers()) as nodes:
        first, second = nodes.nodes.values()
        async with open_kafka_admin(Unresolved(first.port), [(HOST, second.port)]) as admin:
            [outcome] = await admin.incremental_alter_configs([Changes(ConfigResource(TOPIC, "orders"), gone)])
    assert (outcome.error, settings.of[TOPIC, "orders"]) == (ErrorCode.NONE, {})


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(AuthenticationFailed("the certificate has expired"), Untrusted), (TokenUnavailable("it answers 503"), NoToken)],
)
async def test_a_fault_of_security_ends_a_change_that_any_broker_takes(fault: Exception, kind: type[WireError]) -> None:
    settings = Settings()
    gone = (Change(LEADER_THROTTLED_REPLICAS, ConfigOperation.DELETE),)
    async with scripted_nodes(1, 2, answers=settings.answers()) as nodes:
        first, second = nodes.nodes.values()
        async with open_kafka_admin(Unresolved(first.port, fault), [(HOST, second.port)]) as admin:
            with pytest.raises(kind, match=str(fault)):
                await admin.incremental_alter_configs([Changes(ConfigResource(TOPIC, "orders"), gone)])
        assert second.questions(kafka.IncrementalAlterConfigsRequest) == []


async def test_a_question_without_a_token_is_not_put_to_the_next_broker() -> None:
    async with scripted_nodes(1, 2) as nodes:
        first, second = nodes.nodes.values()
        network = Unresolved(first.port, TokenUnavailable("it answers 503"))
        async with open_kafka_cluster(network, nodes.bootstrap, 0.1) as cluster:
            with pytest.raises(ClusterUnreachable, match=r"^no broker of Kafka's answers: it answers 503$"):
                await cluster.describe(())
    assert second.connections == 0
