"""Plans that leave a measure less even: a warning if forced moves cause it, otherwise a refusal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner, Result

from klamm.cli.planning import plan
from spark_bridge.engines.in_process import InProcess
from spark_bridge.errors import PlanError
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.model.summary import Summary
from spark_bridge.planning import plan_cluster, refuse_worse
from spark_bridge.rounds.moves import plan_moves
from spark_bridge.summing import summarize

pytestmark = pytest.mark.usefixtures("forked_bridge")


def ring(count: int, brokers: int) -> list[list[int]]:
    """Return partitions with leaders in turn, each followed by a broker that is farther on from round to round."""
    pairs = [(n % brokers, (n + 1 + n // brokers) % brokers) for n in range(count)]
    return [[leader, (follower + 1) % brokers if leader == follower else follower] for leader, follower in pairs]


def invoked(tmp_path: Path, command: str, lists: Sequence[Sequence[int]], racks: str, *options: str) -> Result:
    """Plan on the command line for brokers 0, 1, ... in racks of one letter."""
    rows = [{"topic": "t", "partition": n, "replicas": replicas} for n, replicas in enumerate(lists)]
    brokers = [{"id": n, "rack": None if rack == "_" else rack} for n, rack in enumerate(racks)]
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(json.dumps({"brokers": brokers, "partitions": rows}))
    return CliRunner().invoke(plan, [command, "--snapshot", str(snapshot), "--out", f"{tmp_path}/plan.json", *options])


@pytest.mark.parametrize(
    ("command", "lists", "racks", "far", "cure"),
    [
        (("remove-brokers", "--brokers", "5"), ring(14, 6), "______", "leaders (43 %, before 29 %)", "leaders"),
        (("relieve", "--brokers", "0"), [[2, 0]] * 5 + [[1, 0]] * 3, "___", "leaders (50 %, before 12 %)", "leaders"),
        (("repair-racks",), ring(17, 6), "aaabbb", "leaders (41 %, before 29 %)", "leaders"),
    ],
)
def test_moves_that_are_asked_for_are_planned_and_warned_of(
    command: tuple[str, ...], lists: list[list[int]], racks: str, far: str, cure: str, tmp_path: Path
) -> None:
    done = invoked(tmp_path, command[0], lists, racks, *command[1:])
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "plan.json").exists()
    said = " ".join(done.stderr.split())
    assert f"The requested change leaves the cluster less even in {far}: `klamm plan {cure}` may correct that" in said
    assert "was forced" not in said
    document = json.loads(invoked(tmp_path, command[0], lists, racks, *command[1:], "-o", "json").stdout)
    assert document["worse"] == [far.partition(" ")[0]]
    assert document["needless"] == []


def summed(block: Block, brokers: Brokers, goal: Goal) -> Summary:
    return summarize(plan_cluster(InProcess([block]), brokers, goal, lambda _: None), {}, 0)


def block_on(lists: Sequence[Sequence[int]]) -> Block:
    same = [10] * len(lists)
    return Block.of([("t", n) for n in range(len(lists))], lists, same, same, same)


def swapped_by(after: Sequence[Sequence[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a planner that ends with these lists, whatever is best."""

    def spoilt(engine: InProcess, *others: object) -> object:
        bounds = plan_moves(engine, *others)  # type: ignore[arg-type]
        (block,) = engine.held
        made = block_on(after)
        engine.held = [block.with_after(made.before)]
        return bounds

    monkeypatch.setattr("spark_bridge.planning.plan_moves", spoilt)


EVEN = [[0], [1], [2], [0], [1], [2], [0], [1]]
SPOILT = [[0], [1], [0], [0], [1], [2], [0], [1]]


@pytest.mark.parametrize(
    "goal",
    [
        Goal(GoalKind.REBALANCE),
        Goal(GoalKind.ADD_BROKERS, frozenset({0})),
        Goal(GoalKind.RELIEVE, frozenset({2})),
    ],
    ids=lambda goal: goal.kind,
)
def test_what_nobody_asked_for_is_refused_unless_it_is_forced(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers.of(Broker(n) for n in range(3))
    swapped_by(SPOILT, monkeypatch)
    summary = summed(block_on(EVEN), brokers, goal)
    assert set(summary.worse) == {"replicas", "leaders", "bytes", "bytes in"}
    assert {*summary.worse} - {*summary.needless} == ({"leaders"} if goal.kind is GoalKind.RELIEVE else set())
    with pytest.raises(PlanError, match=r"less even than it is in replicas \(a broker .*\), .*bytes.*: --force takes"):
        refuse_worse(summary, goal)
    refuse_worse(summary, evolve(goal, force=True))


def test_evening_that_has_to_move_what_drains_is_measured_by_that() -> None:
    # Broker 3 drains two large partitions, and two brokers are left for them.
    brokers = Brokers.of(Broker(n, state=BrokerState.DRAINING if n == 3 else BrokerState.LIVE) for n in range(4))
    lists = [*EVEN, [3]]
    size = [10] * len(EVEN) + [90]
    none = [0] * len(lists)
    block = Block.of([("t", n) for n in range(len(lists))], lists, size, none, none)
    summary = summed(block, brokers, Goal(GoalKind.REBALANCE))
    assert summary.needless == ()
    refuse_worse(summary, Goal(GoalKind.REBALANCE))


def test_leaders_that_nobody_could_have_before_are_measured_by_where_they_began() -> None:
    # The only broker with a replica drains, and what takes its replica is the first that can lead.
    states = [BrokerState.DRAINING, BrokerState.LIVE, BrokerState.LIVE]
    brokers = Brokers.of(Broker(n, state=state) for n, state in enumerate(states))
    goal = Goal(GoalKind.RELIEVE, frozenset({0}), leaders=LeaderScope.ALL)
    summary = summed(block_on([[0]]), brokers, goal)
    assert summary.moved_replicas == 1
    assert summary.needless == ()


@pytest.mark.parametrize(("more", "told"), [(1, False), (30, True)])
def test_a_byte_more_is_not_less_even(more: int, *, told: bool) -> None:
    # Broker 0 is at twice its share of bytes, and alone can receive what broker 3 drains.
    brokers = Brokers.of(Broker(n, state=BrokerState.DRAINING if n == 3 else BrokerState.LIVE) for n in range(4))
    lists = [*[[0]] * 40, *[[1], [2]] * 10, [3, 1, 2]]
    size = [100] * 60 + [more]
    none = [0] * len(lists)
    block = Block.of([("t", n) for n in range(len(lists))], lists, size, none, none)
    summary = summed(block, brokers, Goal(GoalKind.REMOVE_BROKERS, frozenset({3})))
    assert ("bytes" in summary.worse) is told
