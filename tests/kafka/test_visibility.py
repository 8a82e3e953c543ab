"""What an admin client may see of a cluster, on nodes that answer as Kafka's authorizers do, and its judgement."""

from __future__ import annotations

import pytest

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.kafka_admin import open_kafka_admin
from controller.admin.visibility import PARTIAL, PROBE, WHOLE, Visibility, judge, undescribed
from controller.monitoring.cluster_dump import dump_cluster
from tests.kafka.hiding_nodes import DENIED, NO_CLUSTER, denying, logs_of
from tests.kafka.scripted_nodes import scripted_nodes
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.messages import LogDir, LogDirReplica, MetadataResponse, PartitionState, TopicError
from transport.network import TcpNetwork

ALL_TOPICS = f"{PARTIAL}: our principal needs Describe on all topics"
MOVES = "moves in progress are not known: our principal needs Describe on the cluster"


def refused(*names: str, error: ErrorCode = DENIED) -> list[TopicError]:
    """Return the errors of topics."""
    return [TopicError(name, error, "") for name in names]


def test_a_client_that_may_describe_a_name_of_no_topic_sees_all_topics() -> None:
    assert judge([], {}) == judge(refused(PROBE, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), {}) == WHOLE
    assert (WHOLE.lacking, WHOLE.partial) == ((), None)


def test_a_client_that_may_not_sees_a_part() -> None:
    found = judge(refused(PROBE), {})
    assert (found.lacking, found.partial) == ((ALL_TOPICS,), ALL_TOPICS)


def test_logs_of_topics_that_are_denied_one_by_one_make_a_part_and_those_of_deleted_topics_do_not() -> None:
    found = judge(refused("secret"), {"secret": 4, "deleted-meanwhile": 2})
    assert found == Visibility(hidden={"secret": 4})
    assert found.partial == (
        f"{PARTIAL} (brokers have 4 partitions of 1 other topic): our principal needs Describe on topic secret"
    )
    many = judge(refused("a", "b", "c", "d", PROBE), dict.fromkeys("abcd", 2))
    assert many.partial == (
        f"{PARTIAL} (brokers have 8 partitions of 4 other topics): our principal needs Describe on all topics"
    )
    assert "Describe on topic a, b, c and 1 more" in (judge(refused(*"abcd"), dict.fromkeys("abcd", 2)).partial or "")


def test_hidden_moves_are_named_besides_hidden_topics() -> None:
    assert judge(refused(PROBE), {}, sees_moves=False).lacking == (ALL_TOPICS, MOVES)


def test_topics_of_logs_are_counted_once_for_all_replicas() -> None:
    logs = tuple(LogDirReplica(topic, "", number, 1, 1, 0) for topic in ("orders", "secret") for number in (0, 1))
    dirs = {id_: BrokerLogDirs((LogDir("/a", ErrorCode.NONE, logs),)) for id_ in (1, 2)}
    state = PartitionState("orders", "", 0, -1, 1, 5, (1,), -1, (1,))
    assert undescribed(MetadataResponse(None, -1, (), (state,)), dirs) == {"secret": 2}


# --- on nodes ---------------------------------------------------------------------------------------------------


async def test_a_dump_says_that_it_has_only_the_topics_of_the_user() -> None:
    async with scripted_nodes(1, 2, answers={kafka.DescribeLogDirsRequest: logs_of("orders", "secret")}) as cluster:
        cluster.show("orders", (1, 2), (1, 2))
        cluster.show("secret", (1, 2), (1, 2))
        denying(cluster, {"orders"})
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            found = await dump_cluster(admin)
        text = f"{PARTIAL} (brokers have 2 partitions of 1 other topic): our principal needs Describe on all topics"
        assert (found.partial, found.others["partial"], found.gaps[0]) == (text, text, text)
        assert {row["topic"] for row in found.partitions} == {"orders"}


async def test_a_dump_finds_a_topic_that_is_denied_to_a_user_of_all_topics() -> None:
    async with scripted_nodes(
        1, 2, answers={kafka.DescribeLogDirsRequest: logs_of("orders", "secret", "gone")}
    ) as cluster:
        cluster.show("orders", (1, 2), (1, 2))
        denying(cluster, None, {"secret"})
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            found = await dump_cluster(admin)
        assert found.partial == (
            f"{PARTIAL} (brokers have 2 partitions of 1 other topic): our principal needs Describe on topic secret"
        )


async def test_a_dump_of_a_user_who_may_not_describe_the_cluster_names_that_once() -> None:
    async with scripted_nodes(1, 2, answers=NO_CLUSTER) as cluster:
        cluster.show("orders", (1, 2), (1, 2))
        denying(cluster, None)
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            found = await dump_cluster(admin)
        sizes = "sizes and log directories are not known, only counts are: our principal needs Describe on the cluster"
        assert (found.partial, found.gaps) == (None, [MOVES, sizes])


@pytest.mark.parametrize("topics", [("orders",), ()])
async def test_a_whole_dump_is_not_partial(topics: tuple[str, ...]) -> None:
    async with scripted_nodes(1, 2, answers={kafka.DescribeLogDirsRequest: logs_of(*topics)}) as cluster:
        for topic in topics:
            cluster.show(topic, (1, 2), (1, 2))
        denying(cluster, None)
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            found = await dump_cluster(admin)
        assert (found.partial, found.others["partial"]) == (None, None)
