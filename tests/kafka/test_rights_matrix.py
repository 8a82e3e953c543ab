"""The table of rights in docs/kafka_clusters.md, whole, on scripted nodes that hide what Kafka's brokers hide."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from controller.admin.visibility import PROBE
from tests.kafka.hiding_nodes import NO_CLUSTER, denying, logs_of
from tests.kafka.rights_matrix import ROWS, USERS, cells, run_row
from tests.kafka.scripted_nodes import Answer, ScriptedNodes, scripted_nodes
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.schema import Message

VISIBLE: dict[str, Collection[str] | None] = {"nothing": (), "one topic": ("orders",)}
"""The topics that a user sees, if not all."""


def settings_for(request: kafka.DescribeConfigsRequest, *, may_describe: bool) -> kafka.DescribeConfigsResponse:
    """Return the settings of topics, to a user that may describe them."""
    absent, denied = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    there = (DescribeConfigsResourceResult("min.insync.replicas", "1"),)
    results = [
        DescribeConfigsResult(denied, "Topic authorization failed.", one.resource_type, one.resource_name)
        if not may_describe
        else DescribeConfigsResult(0, None, one.resource_type, one.resource_name, there)
        if one.resource_name != PROBE
        else DescribeConfigsResult(absent, None, one.resource_type, one.resource_name)
        for one in request.resources
    ]
    return kafka.DescribeConfigsResponse(results=tuple(results))


@asynccontextmanager
async def nodes_for(user: str) -> AsyncIterator[ScriptedNodes]:
    """Run nodes with two topics for a user."""
    sees_cluster = user in {"all topics, the cluster", "everything"}
    told: dict[type[Message], Answer] = {kafka.DescribeLogDirsRequest: logs_of("orders", "secret")}
    answers = told if sees_cluster else NO_CLUSTER
    async with scripted_nodes(1, 2, 3, answers=answers) as cluster:
        for topic in ("orders", "secret"):
            cluster.show(topic, (1, 2), (2, 1))
        denying(cluster, VISIBLE.get(user))
        settings = partial(settings_for, may_describe=user == "everything")
        for node in cluster.nodes.values():
            node.answers[kafka.DescribeConfigsRequest] = settings
        yield cluster


def test_the_document_has_the_rows_of_the_table() -> None:
    assert list(cells()) == list(ROWS)


@pytest.mark.parametrize("user", USERS)
async def test_each_cell_is_whole_or_says_what_is_hidden_or_what_is_missing(user: str, tmp_path: Path) -> None:
    async with nodes_for(user) as cluster:
        at = ("--bootstrap-server", ",".join(f"{host}:{port}" for host, port in cluster.bootstrap))
        found = {name: await run_row(name, tmp_path, *at) for name in ROWS}
    assert found == {name: row[user] for name, row in cells().items()}
