"""Preferred leaders as a goal of their own: `klamm plan leaders`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner, Result

from klamm.cli.leaders import read_wanted
from klamm.cli.planning import plan
from spark_bridge.engines.in_process import InProcess
from spark_bridge.errors import PlanError
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.planning import plan_cluster
from spark_bridge.report.page import html
from spark_bridge.summing import summarize
from tests.spark.kernel.leader_cases import feasible
from transport.metadata import TopicPartition

pytestmark = pytest.mark.usefixtures("forked_bridge")

LIVE, EXCLUDED, DRAINING, DEAD = BrokerState
LEADERS = Goal(GoalKind.LEADERS)
FIXTURE = Path(__file__).parent.parent / "fixtures" / "kafkakit_leaders.json"

Lists = list[list[int]]


def invoked(snapshot: Path, *options: str) -> Result:
    return CliRunner().invoke(plan, ["leaders", "--snapshot", str(snapshot), *options])


def written(tmp_path: Path, document: dict[str, Any]) -> Path:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(json.dumps(document))
    return snapshot


def test_a_fixture_of_others_ends_as_even_as_a_maximum_flow_makes_it(tmp_path: Path) -> None:
    document = json.loads(FIXTURE.read_text())
    rows, expect = document["snapshot"]["partitions"], document["expect"]
    output = tmp_path / "plan.json"
    done = invoked(written(tmp_path, document["snapshot"]), "--out", str(output), "-o", "json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["changed"], report["reordered"]) == (expect["reorders"], expect["reorders"])
    assert (report["moved_replicas"], report["moved_bytes"], report["lower_bound"]) == (0, 0, 0)
    led = [broker["after"]["leaders"] for broker in report["brokers"]]
    assert [min(led), max(led)] == expect["leaders"]
    number = {broker["id"]: n for n, broker in enumerate(document["snapshot"]["brokers"])}
    lists = [[number[b] for b in row["replicas"]] for row in rows]
    least, most = expect["leaders"]
    assert not feasible(lists, 0, most - 1, len(number))
    assert not feasible(lists, least + 1, len(lists), len(number))


def test_the_file_is_one_that_an_election_takes(tmp_path: Path) -> None:
    rows = [{"topic": "t", "partition": n, "replicas": [1, 2]} for n in range(4)]
    output = tmp_path / "plan.json"
    snapshot = written(tmp_path, {"brokers": [{"id": 1}, {"id": 2}], "partitions": rows})
    assert invoked(snapshot, "--out", str(output)).exit_code == 0
    wanted = read_wanted(output)
    assert wanted.plain == ()
    assert list(wanted.orders.values()) == [(2, 1), (2, 1)]
    assert set(wanted.orders) <= {TopicPartition("t", n) for n in range(4)}


def test_the_report_tells_of_an_election_and_of_no_bytes(tmp_path: Path) -> None:
    rows = [{"topic": "t", "partition": n, "replicas": [1, 2]} for n in range(4)]
    snapshot = written(tmp_path, {"brokers": [{"id": 1}, {"id": 2}], "partitions": rows})
    said = " ".join(invoked(snapshot, "--out", f"{tmp_path}/plan.json").stderr.split())
    assert "No data moves. `klamm leader elect --election-type preferred --path-to-json-file plan.json` orders" in said
    assert "2 of 4 partitions change, 2 of them by order only." in said
    assert "To move" not in said
    assert "leaders 100 % 0 % 5 % reached" in said


@pytest.mark.parametrize("option", [("--leaders", "none"), ("--force",), ("--ignore-racks",), ("--brokers", "1")])
def test_options_of_moves_are_no_options_of_it(option: tuple[str, ...], tmp_path: Path) -> None:
    done = invoked(tmp_path / "snapshot.json", *option)
    assert (done.exit_code, f"No such option '{option[0]}'" in done.stderr) == (2, True)


@pytest.mark.parametrize("scope", [LeaderScope.NONE, LeaderScope.TOUCHED])
def test_a_goal_that_contradicts_itself_is_refused(scope: LeaderScope) -> None:
    with pytest.raises(PlanError, match="leave the scope of leaders out"):
        evolve(LEADERS, leaders=scope)


def cluster_of(rng: Random) -> tuple[Brokers, Lists]:
    """Draw brokers of which not all may lead, in no regard for racks."""
    states = [LIVE] * 3 + rng.choices(list(BrokerState), k=rng.randint(0, 4))
    rng.shuffle(states)
    rows = [Broker(n, rng.choice((None, "a", "b")), rng.choice((1.0, 2.0)), state=s) for n, s in enumerate(states)]
    lists = [rng.sample(range(len(rows)), rng.randint(1, min(4, len(rows)))) for _ in range(rng.randint(5, 60))]
    return Brokers.of(rows), lists


def blocks_of(rng: Random, lists: Lists, count: int) -> list[Block]:
    """Deal partitions of topics a and b, with something that is read of each."""
    dealt = [range(first, len(lists), count) for first in range(count)]
    return [
        Block.of(
            [("ab"[n % 2], n) for n in numbers],
            [lists[n] for n in numbers],
            [10] * len(numbers),
            [1] * len(numbers),
            [rng.randint(0, 50) for _ in numbers],
        )
        for numbers in dealt
    ]


def planned(blocks: list[Block], brokers: Brokers, goal: Goal = LEADERS) -> list[Block]:
    """Plan; what breaks a rule raises."""
    engine = InProcess(blocks)
    made = plan_cluster(engine, brokers, goal, lambda _: None)
    summary = summarize(made, {}, 0)
    assert summary.moved_replicas == summary.lower_bound == 0
    assert summary.changed == summary.reordered
    assert [row.measure for row in summary.evenness] in ([], ["leaders"])
    assert html(summary)
    return engine.held


def lists_of(block: Block) -> tuple[Lists, Lists]:
    before, after = (
        [[b for b in row if b != NOBODY] for row in lists.tolist()] for lists in (block.before, block.after)
    )
    return before, after


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(12, 40))])
def test_lists_keep_their_brokers_and_no_dead_one_leads_where_another_can(seed: int, count: int) -> None:
    rng = Random(seed)
    brokers, lists = cluster_of(rng)
    excluded = {b.id for b in brokers.rows if b.state is EXCLUDED} | ({0} if rng.random() < 0.3 else set[int]())
    goal = evolve(LEADERS, exclude=frozenset(excluded & {0}))
    gone = {b.id for b in brokers.rows if b.state in {DRAINING, DEAD}}
    blocks = planned(blocks_of(rng, lists, count), brokers, goal)
    led_before, led_after, forced = Counter[int](), Counter[int](), 0
    for block in blocks:
        for old, new in zip(*lists_of(block), strict=True):
            assert new == [new[0], *(b for b in old if b != new[0])]
            assert new[0] not in gone or set(old) <= gone
            led_before[old[0]] += 1
            led_after[new[0]] += 1
            # Only excluded brokers are left where the leader may not lead.
            forced += old[0] in gone and set(old) <= gone | excluded
    for broker in excluded - gone:
        assert led_after[broker] <= led_before[broker] + forced or excluded | gone == set(range(len(brokers)))
    again = planned([evolve(block, before=block.after) for block in blocks], brokers, goal)
    assert all((block.before == block.after).all() for block in again)


def test_only_some_topics_get_other_leaders() -> None:
    lists = [[0, 1]] * 20
    goal = evolve(LEADERS, topics=("a",))
    (block,) = planned(blocks_of(Random(1), lists, 1), Brokers.of(Broker(n) for n in range(2)), goal)
    changed = (block.before != block.after).any(axis=1)
    assert {block.topics[t] for t in block.topic[changed]} == {"a"}
    assert int(changed.sum()) == 10


def test_bytes_out_are_evened_by_what_the_number_of_leaders_leaves() -> None:
    lists = [[0, 1], [0, 1], [1, 0], [1, 0]]
    block = Block.of([("t", n) for n in range(4)], lists, [1] * 4, [1] * 4, [90, 100, 10, 20])
    (done,) = planned([block], Brokers.of(Broker(n) for n in range(2)), evolve(LEADERS, tolerance=0.2))
    leaders = done.after[:, 0]
    read = [int(done.bytes_out[leaders == broker].sum()) for broker in (0, 1)]
    assert max(read) <= 1.2 * 110
    assert sorted(leaders.tolist()) == [0, 0, 1, 1]
