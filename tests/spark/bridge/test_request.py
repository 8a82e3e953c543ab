"""Requests to plan, and the invalid ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from attrs import evolve

from spark_bridge.errors import PlanError
from spark_bridge.inputs.sources import Sources, Url, source_of
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.planning import plans_on_spark
from spark_bridge.process.document import from_document
from spark_bridge.process.request import EngineName, PlanRequest

GOAL = Goal(GoalKind.REMOVE_BROKERS, frozenset({7, 3}), tolerance=0.1, leaders=LeaderScope.NONE)
FULL = PlanRequest(
    sources=Sources(Path("snapshot.json"), (Path("loads.csv"),), Path("brokers.csv")),
    goal=GOAL,
    output="out",
    engine=EngineName.SPARK,
    remote="sc://host:15002",
    timeout=60,
    conf={"spark.executor.memory": "2g"},
)


LEAST = PlanRequest(Sources(Path("s")), Goal(GoalKind.REBALANCE), "out")
REMOTE = PlanRequest(
    Sources(Url("s3a://b/s"), (Url("viewfs:///l"), Path("l")), Url("hdfs://n:8020/b")), GOAL, "s3a://b/p"
)


@pytest.mark.parametrize("request_", [FULL, LEAST, REMOTE], ids=["full", "least", "remote"])
def test_a_request_is_the_same_after_a_line_of_json(request_: PlanRequest) -> None:
    line = request_.to_json()
    assert b"\n" not in line
    assert from_document(PlanRequest, orjson.loads(line), "request") == request_


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda d: d.pop("goal"), "request lacks 'goal'"),
        (lambda d: d.update(oven=1), "request has no field 'oven': choose from sources, goal, output, "),
        (lambda d: d.update(engine="steam"), "request.engine must be one of auto, kernel, spark, not 'steam'"),
        (lambda d: d.update(timeout="5"), "request.timeout must be a number, not '5'"),
        (lambda d: d.update(timeout=True), "request.timeout must be a number, not True"),
        (lambda d: d.update(timeout=0), "timeout must be a number of seconds above 0, not 0"),
        (lambda d: d.update(output=""), "output must be a folder for the plan's files, and it is empty"),
        (lambda d: d.update(master="yarn"), "master and remote are two places for Spark to run: give one of them"),
        (lambda d: d.update(remote="host:1"), "remote must be a Spark Connect address such as sc://host:15002, not"),
        (lambda d: d.update(engine="kernel"), "the kernel engine runs without Spark: leave out master and remote, or"),
        (
            lambda d: d.update(output="s3a://b/p"),
            "s3a://b/p: a plan on a Spark Connect server cannot be written there: name",
        ),
        (
            lambda d: d["sources"].update(loads=["s3a://b/l"]) or d.update(engine="kernel", remote=None),
            "s3a://b/l: only Spark reads and writes s3a:// paths: leave out --engine kernel",
        ),
        (lambda d: d.update(conf=[]), "request.conf must be an object, not []"),
        (lambda d: d.update(conf={"spark.cores": 2}), "request.conf.spark.cores must be text, not 2"),
        (lambda d: d.update(conf={"cores": "2"}), "conf takes Spark's settings, whose names begin with 'spark.', not"),
        (lambda d: d.update(goal=[]), "request.goal must be an object, not []"),
        (lambda d: d["goal"].update(kind="rest"), "request.goal.kind must be one of rebalance, add-brokers, "),
        (lambda d: d["goal"].update(brokers="3"), "request.goal.brokers must be a list, not '3'"),
        (lambda d: d["goal"].update(brokers=[3, "7"]), "request.goal.brokers[1] must be a whole number, not '7'"),
        (lambda d: d["goal"].update(tolerance=7), "the tolerance must be above 0 and at most 1"),
        (lambda d: d["sources"].update(snapshot=None), "request.sources.snapshot must be text, not None"),
    ],
)
def test_what_is_no_request_is_refused_in_one_line(spoil: Callable[[dict[str, Any]], object], line: str) -> None:
    document = orjson.loads(FULL.to_json())
    spoil(document)
    with pytest.raises(PlanError) as refused:
        from_document(PlanRequest, document, "request")
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^request must be an object, not 7$"):
        from_document(PlanRequest, 7, "request")


@pytest.mark.parametrize(
    ("engine", "master", "partitions", "on_spark"),
    [
        (EngineName.AUTO, None, 1_000_000, False),
        (EngineName.AUTO, None, 4_194_304, False),
        (EngineName.AUTO, None, 4_194_305, True),
        (EngineName.AUTO, "local[4]", 10, True),
        (EngineName.KERNEL, None, 10_000_000, False),
        (EngineName.SPARK, None, 10, True),
    ],
)
def test_spark_plans_where_it_is_asked_for_or_pays(
    engine: EngineName, master: str | None, partitions: int, *, on_spark: bool
) -> None:
    request = PlanRequest(Sources(Path("s")), Goal(GoalKind.REBALANCE), "out", engine, master=master)
    assert plans_on_spark(request, partitions) is on_spark


def test_spark_plans_what_only_it_reads_or_writes() -> None:
    request = PlanRequest(Sources(Path("s")), Goal(GoalKind.REBALANCE), "out")
    assert not plans_on_spark(request)
    assert plans_on_spark(evolve(request, output="s3a://b/p"))
    assert plans_on_spark(evolve(request, sources=Sources(Path("s"), (Url("s3a://b/l"),))))


def test_a_file_of_this_machine_may_be_named_by_its_url() -> None:
    assert source_of("file:///data/s.json") == Path("/data/s.json")
    assert source_of("C:/s.json") == Path("C:/s.json")
    assert source_of("s3a://b/s/") == Url("s3a://b/s")
    assert isinstance(source_of("s3a://b/s"), Url)
