"""The admin client of Kafka's clusters: which node it asks, what it repeats, and what it puts together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from controller.admin.active_controller import ClusterUnreachable, OutcomeUnknown
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.kafka_admin import open_kafka_admin
from controller.admin.kafka_summary import counted
from controller.admin.recognition import Protocol, recognize
from tests.kafka.scripted_nodes import HOST, Answer, ScriptedNodes, scripted_nodes
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.alter_partition_reassignments_response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from transport.kafka.messages.create_topics_response import CreatableTopicResult
from transport.kafka.messages.delete_topics_response import DeletableTopicResult
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from transport.kafka.messages.elect_leaders_response import PartitionResult, ReplicaElectionResult
from transport.kafka.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from transport.kafka.schema import Message
from transport.messages import (
    UNKNOWN,
    BrokerEndpoint,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    MetadataResponse,
    NewTopic,
    PartitionError,
    PartitionState,
    TopicError,
)
from transport.metadata import LEADER_DURING_DELETE, TopicPartition
from transport.network import TcpNetwork
from transport.security.plain import PLAIN, Login
from transport.security.sasl import SaslLogin, SaslServer, nobody
from transport.wire import ConnectionBroken, Untrusted
from transport.wire.secured import SecuredNetwork
from transport.zookeeper_server import free_port

TP = TopicPartition("orders", 0)
CREATED = kafka.CreateTopicsResponse(topics=(CreatableTopicResult("orders"),))
NEW = NewTopic("orders", 1, 1)
OURS = 1001
BROKER = 4
NO_MOVES = kafka.ListPartitionReassignmentsResponse()


def moving(*replicas: int, adding: int, removing: int) -> kafka.ListPartitionReassignmentsResponse:
    """Return a reassignment of the partition."""
    move = OngoingPartitionReassignment(0, replicas, (adding,), (removing,))
    return kafka.ListPartitionReassignmentsResponse(topics=(OngoingTopicReassignment("orders", (move,)),))


def logs(*sizes: int) -> kafka.DescribeLogDirsResponse:
    """Return the log directory of a broker with logs of partitions from 0 on."""
    partitions = tuple(DescribeLogDirsPartition(number, size) for number, size in enumerate(sizes))
    topics = (DescribeLogDirsTopic("orders", partitions),) if sizes else ()
    return kafka.DescribeLogDirsResponse(results=(DescribeLogDirsResult(0, "/data", topics, 100, 40),))


def no_settings(request: kafka.DescribeConfigsRequest) -> kafka.DescribeConfigsResponse:
    """Return that the client may not see settings."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    refused = (DescribeConfigsResult(code, "no", one.resource_type, one.resource_name) for one in request.resources)
    return kafka.DescribeConfigsResponse(results=tuple(refused))


def in_turn(
    *answers: kafka.ListPartitionReassignmentsResponse,
) -> Callable[[object], kafka.ListPartitionReassignmentsResponse]:
    """Return what gives these answers one after the other, and the last one from then on."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


# --- which node is asked ----------------------------------------------------------------------------------------


async def test_a_question_goes_to_the_next_node_if_one_ends_the_connection() -> None:
    async with scripted_nodes(1, 2) as cluster:
        cluster.nodes[1].answers[kafka.MetadataRequest] = lambda _: None
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            found = await admin.read_metadata([])
        assert [broker.id for broker in found.brokers] == [1, 2]
        assert len(cluster.nodes[1].questions(kafka.MetadataRequest)) == 1


async def test_a_cluster_without_a_node_is_unreachable() -> None:
    port = free_port()
    async with open_kafka_admin(TcpNetwork(), [(HOST, port)], 0.5) as admin:
        with pytest.raises(ClusterUnreachable, match=f"no broker of Kafka's answers: .*{port}: nothing listens there"):
            await admin.read_metadata()


async def test_an_address_that_a_broker_advertises_in_vain_is_said_to_be_its_own() -> None:
    async with scripted_nodes(1, 2) as cluster:
        bootstrap = cluster.bootstrap[:1]
        cluster.controller, cluster.nodes[2].port = 2, free_port()
        async with open_kafka_admin(TcpNetwork(), bootstrap, 0.5) as admin:
            with pytest.raises(ConnectionBroken) as fault:
                await admin.create_topics([NEW])
        at = f"{HOST}:{cluster.nodes[2].port}"
        assert str(fault.value).endswith(f"{at}: nothing listens there (advertised by broker 2 as {at})")


async def test_a_change_is_repeated_at_the_controller_that_took_over() -> None:
    async with scripted_nodes(1, 2) as cluster:

        def refuse(_: kafka.CreateTopicsRequest) -> kafka.CreateTopicsResponse:
            cluster.controller = 2
            return kafka.CreateTopicsResponse(topics=(CreatableTopicResult("orders", "", ErrorCode.NOT_CONTROLLER),))

        cluster.nodes[1].answers[kafka.CreateTopicsRequest] = refuse
        cluster.nodes[2].answers[kafka.CreateTopicsRequest] = CREATED
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            assert (await admin.create_topics([NEW])).topics == (TopicError("orders"),)
        asked = [len(node.questions(kafka.CreateTopicsRequest)) for node in cluster.nodes.values()]
        assert asked == [1, 1]


async def test_a_change_whose_answer_is_lost_is_not_repeated() -> None:
    async with scripted_nodes(1, answers={kafka.CreateTopicsRequest: lambda _: None}) as cluster:
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            with pytest.raises(OutcomeUnknown, match="it may have been done or not: look before you ask again"):
                await admin.create_topics([NEW])
        assert len(cluster.nodes[1].questions(kafka.CreateTopicsRequest)) == 1


async def test_a_change_that_timed_out_at_the_controller_is_not_repeated() -> None:
    late = kafka.AlterPartitionReassignmentsResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    async with scripted_nodes(1, answers={kafka.AlterPartitionReassignmentsRequest: late}) as cluster:
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            with pytest.raises(OutcomeUnknown, match="got no answer of the controller in time; it may have been done"):
                await admin.alter_partition_reassignments([])
        assert len(cluster.nodes[1].questions(kafka.AlterPartitionReassignmentsRequest)) == 1


async def test_a_change_goes_to_the_next_controller_if_the_known_one_is_dead() -> None:
    async with scripted_nodes(1, 2, answers={kafka.CreateTopicsRequest: CREATED}) as cluster:
        cluster.controller, cluster.nodes[1].port = 1, free_port()

        def elect(request: kafka.MetadataRequest) -> kafka.MetadataResponse:
            if len(cluster.nodes[2].questions(kafka.MetadataRequest)) > 1:
                cluster.controller = 2
            return cluster.metadata(request)

        cluster.nodes[2].answers[kafka.MetadataRequest] = elect
        async with open_kafka_admin(TcpNetwork(), [(HOST, cluster.nodes[2].port)]) as admin:
            assert (await admin.create_topics([NEW])).topics == (TopicError("orders"),)
        assert len(cluster.nodes[2].questions(kafka.CreateTopicsRequest)) == 1


def settings_of_brokers(request: kafka.DescribeConfigsRequest) -> kafka.DescribeConfigsResponse:
    """Return the id of a broker; a controller of ours, whose ids begin at 1001 here, has no settings."""
    [asked] = request.resources
    own = (DescribeConfigsResourceResult("broker.id", asked.resource_name),)
    configs = own if int(asked.resource_name) < OURS else ()
    return kafka.DescribeConfigsResponse(
        results=(DescribeConfigsResult(0, None, BROKER, asked.resource_name, configs),)
    )


@pytest.mark.parametrize("controller", [2, OURS])
async def test_a_controller_of_ours_is_no_broker(controller: int) -> None:
    answers: dict[type[Message], Answer] = {
        kafka.DescribeConfigsRequest: settings_of_brokers,
        kafka.DescribeLogDirsRequest: logs(),
        kafka.CreateTopicsRequest: CREATED,
    }
    async with scripted_nodes(1, 2, OURS, answers=answers) as cluster:
        cluster.controller = controller
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            found = await admin.read_metadata()
            summary = await admin.describe_cluster()
            told = await admin.describe_log_dirs()
            [own] = await admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, str(OURS))])
            await admin.create_topics([NEW])
        assert own.message == "node 1001 is a controller, which has no settings: name a broker"
        # A node that is not the controller is a broker.
        expected = [1, 2] if controller == OURS else [1, 2, OURS]
        assert [broker.id for broker in found.brokers] == expected
        assert [broker.endpoint.id for broker in summary.brokers] == expected
        assert list(told) == expected
        assert summary.controller.id == controller
        asked = cluster.nodes[controller].questions(kafka.DescribeConfigsRequest)
        assert len([one for one in asked if one.resources[0].configuration_keys is not None]) == 1
        assert len(cluster.nodes[controller].questions(kafka.CreateTopicsRequest)) == 1


SASL = SaslServer((PLAIN,), {"alice": "alice-secret"}, nobody)


async def test_a_client_logs_in() -> None:
    network = SecuredNetwork(TcpNetwork(), SaslLogin(PLAIN, Login("alice", "alice-secret")))
    async with scripted_nodes(1, 2, sasl=SASL) as cluster, open_kafka_admin(network, cluster.bootstrap) as admin:
        assert await recognize(cluster.bootstrap, network) is Protocol.KAFKA
        assert len((await admin.read_metadata([])).brokers) == 2


async def test_a_client_that_does_not_log_in_is_told_at_once() -> None:
    async with scripted_nodes(1, sasl=SASL) as cluster, open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
        assert await recognize(cluster.bootstrap, TcpNetwork()) is Protocol.KAFKA
        said = r"wants a login by SASL \(PLAIN\): set security\.protocol to SASL_PLAINTEXT, and sasl\.mechanism and "
        with trio.fail_after(10), pytest.raises(Untrusted, match=said):
            await admin.read_metadata([])
        assert cluster.nodes[1].connections <= 3, "the first says it all"


async def test_a_node_that_ends_connections_for_another_reason_is_asked_again() -> None:
    async with scripted_nodes(1) as cluster, open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
        answers, left = cluster.nodes[1].answers, [None] * 4
        answers[kafka.MetadataRequest] = lambda asked: left.pop() if left else cluster.metadata(asked)
        assert len((await admin.read_metadata([])).brokers) == 1
        assert left == []


async def test_a_wrong_password_is_not_tried_again() -> None:
    network = SecuredNetwork(TcpNetwork(), SaslLogin(PLAIN, Login("alice", "wrong")))
    async with scripted_nodes(1, 2, sasl=SASL) as cluster, open_kafka_admin(network, cluster.bootstrap) as admin:
        with pytest.raises(Untrusted, match=r"the login of alice at .* by PLAIN failed"):
            await admin.read_metadata([])
        assert [node.connections for node in cluster.nodes.values()] == [1, 0]


async def test_connections_are_kept() -> None:
    async with scripted_nodes(1) as cluster, open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
        for _ in range(3):
            await admin.read_metadata()
        assert cluster.nodes[1].connections == 1


async def test_it_is_an_admin_for_all_commands() -> None:
    async with scripted_nodes(1) as cluster, open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
        assert isinstance(admin, ClusterAdmin)


# --- moves ------------------------------------------------------------------------------------------------------


async def test_a_broker_that_is_behind_is_asked_again_at_the_end_of_a_move() -> None:
    async with scripted_nodes(1) as cluster:
        node = cluster.nodes[1]
        node.answers[kafka.ListPartitionReassignmentsRequest] = in_turn(moving(3, 1, 2, adding=3, removing=2), NO_MOVES)
        cluster.show("orders", (3, 1, 2))

        def catch_up(request: kafka.MetadataRequest) -> kafka.MetadataResponse:
            if len(node.questions(kafka.MetadataRequest)) > 5:
                cluster.show("orders", (3, 1))
            return cluster.metadata(request)

        node.answers[kafka.MetadataRequest] = catch_up
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            [state] = (await admin.read_metadata()).partitions
            assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((3, 1, 2), (3,), (2,))
            [state] = (await admin.read_metadata()).partitions
            assert (state.replicas, state.is_being_reassigned) == ((3, 1), False)


async def test_a_move_is_described_with_the_sizes_that_its_brokers_tell() -> None:
    async with scripted_nodes(1, 2, 3, answers={kafka.DescribeConfigsRequest: no_settings}) as cluster:
        cluster.show("orders", (1, 2, 3), isr=(1, 2))
        for id_, size in ((1, 800), (3, 200)):
            cluster.nodes[id_].answers[kafka.DescribeLogDirsRequest] = logs(size)
        listed = moving(3, 1, 2, adding=3, removing=2)
        cluster.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = listed
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            [move] = (await admin.describe_reassignments()).values()
        assert (move.new_replicas, move.origin_replicas, move.isr) == ((3, 1), (1, 2), (1, 2))
        added, kept = move.progress
        assert (added.broker, added.log_bytes, added.leader_bytes, added.in_sync) == (3, 200, 800, False)
        assert (kept.broker, kept.log_bytes, kept.in_sync) == (1, 800, True)
        assert (move.leader_throttle, added.throttle, move.rate, move.start_time_ms) == (UNKNOWN,) * 4


async def test_log_directories_have_volumes_and_a_dead_broker_a_fault() -> None:
    async with scripted_nodes(1, answers={kafka.DescribeLogDirsRequest: logs(5)}) as cluster:
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            told = await admin.describe_log_dirs([1, 7])
        assert told[1].volumes["/data"].usable == 40
        assert [log.size for log in told[1].log_dirs[0].replicas] == [5]
        assert told[7].fault == "broker 7 is not alive"


async def test_brokers_that_are_named_are_looked_up_once_and_again_after_they_have_moved() -> None:
    async with scripted_nodes(1, 2, answers={kafka.DescribeLogDirsRequest: logs(5)}) as cluster:

        def lookups() -> int:
            return sum(len(node.questions(kafka.MetadataRequest)) for node in cluster.nodes.values())

        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap[:1]) as admin:
            for _ in range(3):
                assert not (await admin.describe_log_dirs([2]))[2].fault
            assert lookups() == 1
            second = cluster.nodes[2]
            second.answers[kafka.DescribeLogDirsRequest] = lambda _: None
            assert "closed the connection" in (await admin.describe_log_dirs([2]))[2].fault
            second.port = cluster.nodes[1].port
            assert not (await admin.describe_log_dirs([2]))[2].fault
            assert lookups() == 2


async def test_a_broker_that_tells_of_no_directory_has_refused() -> None:
    async with scripted_nodes(1) as cluster, open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
        cluster.nodes[1].answers[kafka.DescribeLogDirsRequest] = kafka.DescribeLogDirsResponse()
        told = await admin.describe_log_dirs()
    assert told[1].fault == "broker 1 tells of no log directory: our principal needs Describe on the cluster"


# --- elections and deletions ------------------------------------------------------------------------------------


def reassigned(_: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
    """Return that a partition has been reassigned."""
    rows = (ReassignablePartitionResponse(0, 0, None),)
    return kafka.AlterPartitionReassignmentsResponse(responses=(ReassignableTopicResponse("orders", rows),))


def elected(_: kafka.ElectLeadersRequest) -> kafka.ElectLeadersResponse:
    """Return that a leader was there already."""
    rows = (PartitionResult(0, ErrorCode.ELECTION_NOT_NEEDED, "it leads"),)
    return kafka.ElectLeadersResponse(replica_election_results=(ReplicaElectionResult("orders", rows),))


ELECTING: dict[type[Message], Answer] = {
    kafka.AlterPartitionReassignmentsRequest: reassigned,
    kafka.ElectLeadersRequest: elected,
}


async def elect(cluster: ScriptedNodes, *order: int) -> PartitionError:
    """Elect a leader by an order, and return the outcome."""
    async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
        [outcome] = await admin.elect_leaders(ElectionType.PREFERRED, orders={TP: order})
    return outcome


async def test_an_order_is_a_reassignment_and_an_election() -> None:
    async with scripted_nodes(1, 2, answers=ELECTING) as cluster:
        cluster.show("orders", (1, 2))
        assert await elect(cluster, 2, 1) == PartitionError("orders", 0)
        [asked] = cluster.nodes[1].questions(kafka.AlterPartitionReassignmentsRequest)
        assert asked.topics[0].partitions[0].replicas == (2, 1)
        [asked_for] = cluster.nodes[1].questions(kafka.ElectLeadersRequest)
        assert asked_for.topic_partitions is not None
        assert [(one.topic, one.partitions) for one in asked_for.topic_partitions] == [("orders", (0,))]


async def test_the_order_that_is_there_is_not_written_again() -> None:
    async with scripted_nodes(1, 2, answers=ELECTING) as cluster:
        cluster.show("orders", (1, 2))
        outcome = await elect(cluster, 1, 2)
        assert outcome == PartitionError("orders", 0, ErrorCode.ELECTION_NOT_NEEDED, "it leads")
        assert cluster.nodes[1].questions(kafka.AlterPartitionReassignmentsRequest) == []


@pytest.mark.parametrize(
    ("order", "code", "text"),
    [
        (
            (3, 1),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "[3, 1] is no order of orders-0's replicas [1, 2]: name each of them once",
        ),
        (
            (2, 1),
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            "the preferred leader 2 of orders-0 is not in the ISR [1]: wait for it to catch up",
        ),
    ],
)
async def test_an_order_that_cannot_lead_changes_nothing(order: tuple[int, ...], code: ErrorCode, text: str) -> None:
    async with scripted_nodes(1, 2, answers=ELECTING) as cluster:
        cluster.show("orders", (1, 2), isr=(1,))
        assert await elect(cluster, *order) == PartitionError("orders", 0, code, text)
        assert cluster.nodes[1].questions(kafka.AlterPartitionReassignmentsRequest) == []


async def test_a_deleted_topic_is_shown_until_no_broker_has_its_logs() -> None:
    async with scripted_nodes(1, 2, answers={kafka.DescribeLogDirsRequest: logs()}) as cluster:
        cluster.show("orders", (1, 2), (2, 1))

        def delete(_: kafka.DeleteTopicsRequest) -> kafka.DeleteTopicsResponse:
            cluster.topics.clear()
            return kafka.DeleteTopicsResponse(responses=(DeletableTopicResult("orders"),))

        cluster.nodes[1].answers[kafka.DeleteTopicsRequest] = delete
        cluster.nodes[2].answers[kafka.DescribeLogDirsRequest] = logs(5)
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            assert (await admin.delete_topics(["orders"])).topics == (TopicError("orders"),)
            [left] = (await admin.read_metadata(["orders"])).partitions
            assert (left.tp, left.leader, left.offline_replicas) == (TP, LEADER_DURING_DELETE, ())
            cluster.nodes[2].answers[kafka.DescribeLogDirsRequest] = logs()
            assert (await admin.read_metadata(["orders"])).partitions == ()


# --- the summary ------------------------------------------------------------------------------------------------


def state(number: int, leader: int, isr: tuple[int, ...], topic: str = "orders") -> PartitionState:
    """Return a partition on brokers 1 and 2."""
    return PartitionState(topic, "", number, UNKNOWN, leader, 0, isr, UNKNOWN, (1, 2))


def test_partitions_are_counted() -> None:
    brokers = BrokerEndpoint(2, "b", 2), BrokerEndpoint(1, "a", 1)
    states = (
        state(0, 1, (1, 2)),
        state(1, 2, (2,)),
        state(2, -1, ()),
        state(0, LEADER_DURING_DELETE, (), topic="old"),
    )
    found = counted(MetadataResponse(brokers[0], 8, brokers, states), {"orders": 2})
    assert [(one.endpoint.id, one.leaders, one.replicas, one.epoch) for one in found.brokers] == [
        (1, 1, 3, UNKNOWN),
        (2, 1, 3, UNKNOWN),
    ]
    assert (found.topics, found.topics_being_deleted, found.partitions) == (1, 1, 3)
    assert (found.offline, found.under_replicated, found.under_min_isr, found.without_preferred_leader) == (1, 2, 2, 2)


def test_without_settings_it_is_unknown_how_many_isrs_are_too_small() -> None:
    assert counted(MetadataResponse(None, 8, (), (state(0, 1, (1, 2)),)), {}).under_min_isr == UNKNOWN
