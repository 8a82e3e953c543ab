"""Partitions of clusters of Kafka's, read in pages (KIP-966)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.admin.kafka_admin import open_kafka_admin
from tests.cli.shell import Shell
from tests.kafka.kraft_cluster import kraft_cluster
from tests.kafka.real_cluster import until
from tests.kafka.scripted_nodes import scripted_nodes
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from transport.kafka.reading import PAGE_PARTITIONS
from transport.network import TcpNetwork


def paged(request: kafka.DescribeTopicPartitionsRequest) -> kafka.DescribeTopicPartitionsResponse:
    """Return two partitions of `orders`, one on each page, and a topic that may not be described."""
    number = 0 if request.cursor is None else request.cursor.partition_index
    row = DescribeTopicPartitionsResponsePartition(0, number, 1, 5, (1, 2), (1,), None, None, (2,))
    orders = DescribeTopicPartitionsResponseTopic(0, "orders", partitions=(row,))
    if number == 0:
        return kafka.DescribeTopicPartitionsResponse(topics=(orders,), next_cursor=Cursor("orders", 1))
    secret = DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "secret")
    return kafka.DescribeTopicPartitionsResponse(topics=(orders, secret))


async def test_partitions_are_read_in_pages_where_brokers_give_them() -> None:
    async with scripted_nodes(1, 2, answers={kafka.DescribeTopicPartitionsRequest: paged}) as cluster:
        cluster.show("orders", (1, 2))
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            found = await admin.read_metadata()
            with pytest.raises(ApiError, match="our principal needs Describe on topic secret"):
                await admin.read_metadata(["secret", "orders"])
        rows = [(state.tp.partition, state.leader, state.isr, state.offline_replicas) for state in found.partitions]
        assert rows == [(0, 1, (1,), (2,)), (1, 1, (1,), (2,))]
        assert [broker.id for broker in found.brokers] == [1, 2]
        pages = [one for node in cluster.nodes.values() for one in node.questions(kafka.DescribeTopicPartitionsRequest)]
        assert [[topic.name for topic in page.topics] for page in pages] == [[], [], *[["orders", "secret"]] * 2]
        assert [page.cursor is None for page in pages] == [True, False] * 2
        metadata = [one for node in cluster.nodes.values() for one in node.questions(kafka.MetadataRequest)]
        assert {one.topics for one in metadata} == {()}


@pytest.mark.soak
@pytest.mark.usefixtures("needs_kraft")
async def test_a_topic_of_several_pages_under_kraft(tmp_path: Path) -> None:
    many = PAGE_PARTITIONS + 100
    async with kraft_cluster(tmp_path, 1) as cluster:
        shell = Shell(cluster.bootstrap)
        counts = {"few": 2, "many": many, "more": 2}
        for name, count in counts.items():
            await shell("topic", "create", name, "--partitions", str(count), "--timeout", "120")
        expected = [(name, number) for name, count in counts.items() for number in range(count)]
        for named in ((), ("more", "many", "few")):

            async def are_there(words: tuple[str, ...] = named) -> bool:
                rows = json.loads(await shell("topic", "describe", *words, "--if-exists", "-o", "json"))
                return [(row["topic"], row["partition"]) for row in rows] == expected

            # A broker that creates many logs hears of the next topic late.
            await until(are_there)
        assert "there is no topic absent" in await shell("topic", "describe", "many", "absent", fails=True)
