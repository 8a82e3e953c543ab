"""Failing plans are made smaller as long as they fail in the same way; what is left is a scenario that fails.

`python -m tests.simulation.test_shrinking` shrinks a seed that catches each planted bug, and prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve

from simulator.actions.processes import Crash, Skew, Start, Wake
from simulator.actions.requests import AddPartitions, CreateTopic, Reassign
from simulator.actions.scene import Action
from simulator.actions.sessions import Lag
from simulator.actions.znodes import NotifyLogDir, WriteElection
from simulator.random_run.happenings import Happening, InTurn, Lasting
from simulator.random_run.plan import RunPlan, draw
from simulator.random_run.run import RunOutcome, run
from simulator.random_run.workers import DIED
from simulator.safety.invariants import Violation
from simulator.scenario import runner
from simulator.scenario.loader import load
from simulator.settings import Settings
from simulator.shrinking.actions import simpler
from simulator.shrinking.child_processes import ChildProcesses
from simulator.shrinking.names import renamed
from simulator.shrinking.scenario_file import Shrunk, free_path, smallest
from simulator.shrinking.shrink import drop_events, shrink
from simulator.shrinking.trials import Trials, in_this_process, kind_of
from tests.simulation.planted.bugs import planted
from tests.simulation.test_planted import CAUGHT_BY

MOST_EVENTS: Final = 12
"""The most events that the scenarios of ten bugs may have on average."""

MOST_SEEDS: Final = 60
MOST_SECONDS: Final = 120.0
FASTEST: Final = "no_epoch_bump"
TEN: Final = tuple(
    {**dict.fromkeys([FASTEST, "a_last_member_leaves_the_isr", "cancels_without_a_survivor"]), **CAUGHT_BY}
)[:10]


# --- the search, without any cluster ----------------------------------------------------------------------------


def plan(*actions: Action) -> RunPlan:
    """Return a plan of actions, one a second."""
    happenings = tuple(Happening(float(at), None, action) for at, action in enumerate(actions, 1))
    topics = (CreateTopic("a", ((1, 2, 3), (4, 5))), CreateTopic("b", ((6,),)))
    settings = Settings(brokers=7, controllers=3, servers=3, latency=0.01, racks=("a", "b"))
    return RunPlan(7, settings, topics, 40, ("a-0", "b-0"), 3.3, ("moves",), happenings, 25.5)


CRASHES: Final = plan(*map(Crash, range(1, 8)), Crash(101), Crash(102), Crash(103))


def failing_if(is_bad: Callable[[RunPlan], bool], before: RunPlan = CRASHES, *, invariant: str = "it works") -> Trials:
    """Return the trials of a plan, by default of ten crashes, where plans fail that are bad."""

    def judge(plans: Iterator[RunPlan]) -> Generator[RunOutcome, None, None]:
        for each in plans:
            yield RunOutcome(each.seed, "", {}, Violation(invariant, "it is bad") if is_bad(each) else None)

    return Trials(before, "it works", judge)


def crashed(of: RunPlan) -> list[int | str]:
    """Return the nodes that a plan crashes."""
    return [node for each in of.happenings if isinstance(each.action, Crash) for node in each.action.nodes]


@pytest.mark.parametrize("needed", [(), (4,), (1, 103), (2, 3, 7), tuple(range(1, 8))])
def test_only_the_events_that_are_needed_are_left(needed: tuple[int, ...]) -> None:
    trials = failing_if(lambda each: {*needed} <= {*crashed(each)})
    drop_events(trials)
    assert crashed(trials.best) == list(needed)


def test_a_failure_of_another_kind_does_not_count() -> None:
    trials = failing_if(lambda _: True, invariant="something else works")
    shrink(trials)
    assert len(trials.best.happenings) == 10


def test_no_plan_is_tried_twice() -> None:
    seen: list[str] = []

    def is_bad(each: RunPlan) -> bool:
        seen.append(f"{each} {each.settings.broker_ids}")
        return 4 in crashed(each)

    trials = failing_if(is_bad)
    shrink(trials)
    assert len(seen) == len({*seen}) == trials.runs


def test_everything_that_is_not_needed_goes() -> None:
    trials = failing_if(lambda each: 4 in crashed(each) and each.settings.controllers > 1 and bool(each.topics))
    shrink(trials)
    best = trials.best
    assert best.settings == Settings(brokers=1, broker_ids=best.settings.broker_ids)
    assert [len(row) for topic in best.topics for row in topic.assignment] == [1]
    assert (best.records, best.load, best.seconds) == (0, (), 1.0)
    assert best.happenings == (Happening(1.0, None, Crash(4)),)


def test_nothing_is_tried_once_the_time_is_up() -> None:
    ticks = count()
    trials = failing_if(lambda each: 4 in crashed(each))
    hasty = Trials(trials.best, trials.kind, trials.judge, seconds=5.0, clock=lambda: float(next(ticks)))
    shrink(hasty)
    assert hasty.is_over
    assert 0 < hasty.runs < 5


def test_exceptions_of_other_names_are_other_kinds() -> None:
    invariant = "a run ends without an exception"
    kinds = [kind_of(Violation(invariant, text)) for text in ("KeyError: 1", "KeyError: 2", "ValueError: 1")]
    assert kinds[0] == kinds[1] != kinds[2]
    assert kind_of(Violation("x", "KeyError: 1")) == kind_of(Violation("x", "ValueError: 1"))


@pytest.mark.parametrize(
    ("action", "among"),
    [
        (Lasting(Crash(1), 3.217, (Start("same"),)), Crash(1)),
        (Lasting(Crash(1), 3.217, (Start("same"),)), Lasting(Crash(1), 3.0, (Start("same"),))),
        (Lasting(Crash(1, noticed=True), 3.0, (Start("same"),)), Lasting(Crash(1), 3.0, (Start("same"),))),
        (InTurn((Crash(1), Wake(2))), Wake(2)),
        (InTurn((Crash(1), Wake(2))), InTurn((Crash(1),))),
        (Crash("leader of a-0"), Crash(6)),
        (Crash((1, 2)), Crash(2)),
        (Reassign({"a-0": (1, 2), "a-1": None}), Reassign({"a-1": None})),
        (Reassign({"a-0": (1, 2)}), Reassign({"a-0": (2,)})),
    ],
)
def test_an_action_becomes_simpler(action: Action, among: Action) -> None:
    assert among in list(simpler(action, brokers=(5, 6)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Crash((5, "leader of a-1", 101)), Crash((2, "leader of a-0", 101))),
        (Reassign({"a-1": (5, 3), "b-1": None}), Reassign({"a-0": (2, 3), "b-1": None})),
        (Lasting(Skew({5: 1.5}), 5.0, (Start(5),)), Lasting(Skew({2: 1.5}), 5.0, (Start(2),))),
        (CreateTopic("c", ((5, 1),)), CreateTopic("c", ((2, 1),))),
        (NotifyLogDir(5), NotifyLogDir(2)),
        (NotifyLogDir("leader of a-1"), NotifyLogDir("leader of a-0")),
        (WriteElection(("a-1",)), WriteElection(("a-0",))),
        (AddPartitions({"a": 5}), AddPartitions({"a": 5})),
        (Lag({5: 1.0}), Lag({5: 1.0})),
    ],
)
def test_brokers_and_partitions_get_new_names_wherever_they_are_named(before: Action, after: Action) -> None:
    named = renamed(evolve(plan(before), load=("a-1",)), {5: 2, "a-1": "a-0"})
    assert (named.happenings, named.load) == (plan(after).happenings, ("a-0",))


def test_a_partition_in_the_middle_goes_and_brokers_have_no_gaps() -> None:
    def is_bad(each: RunPlan) -> bool:
        actions = [happening.action for happening in each.happenings]
        moved = [action.targets for action in actions if isinstance(action, Reassign)]
        rows = {f"{topic.name}-{number}": row for topic in each.topics for number, row in enumerate(topic.assignment)}
        return any(len(rows.get(name, ())) > 1 for targets in moved for name in targets)

    trials = failing_if(is_bad, plan(Crash(1), Reassign({"a-1": (4, 5)})))
    shrink(trials)
    assert trials.best.topics == (CreateTopic("a", ((1, 2),)),)
    assert trials.best.settings == Settings(brokers=2)
    [happening] = trials.best.happenings
    assert (happening.at, isinstance(happening.action, Reassign)) == (1.0, True)


def test_pauses_become_shorter() -> None:
    actions = plan(Crash(1), Crash(2))
    slow = evolve(actions, happenings=tuple(evolve(each, at=each.at * 9) for each in actions.happenings))

    def is_bad(each: RunPlan) -> bool:
        times = [happening.at for happening in each.happenings]
        return len(times) == 2 and times[1] - times[0] >= 4

    trials = failing_if(is_bad, slow)
    shrink(trials)
    assert [happening.at for happening in trials.best.happenings] == [1.0, 6.0]
    assert trials.best.seconds == 6.0


# --- child processes --------------------------------------------------------------------------------------------


def test_child_processes_give_the_outcomes_in_order_also_after_an_early_end() -> None:
    plans = [evolve(draw(seed), seconds=2.0) for seed in (1, 2, 3)]
    expected = [run(each).digest for each in plans]
    with ChildProcesses(2) as children:
        first = children.judge(iter(plans))
        assert next(first).digest == expected[0]
        first.close()
        assert [outcome.digest for outcome in children.judge(iter(plans))] == expected


def test_a_run_that_takes_too_long_is_ended() -> None:
    with ChildProcesses(1, seconds=0.0) as children:
        [outcome] = children.judge(iter([draw(1)]))
    assert outcome.violation is not None
    assert (outcome.violation.invariant, outcome.violation.text) == (DIED, "it took more than 0 s")


# --- planted bugs -----------------------------------------------------------------------------------------------


def caught(name: str) -> tuple[RunPlan, Violation]:
    """Return the plan of a seed that catches a planted bug: of the recorded one, or else of the first that does."""
    with planted(name):
        for seed in (CAUGHT_BY[name]["seed"], *range(1, MOST_SEEDS)):
            violation = run(draw(seed)).violation
            if violation is not None:
                return draw(seed), violation
    raise AssertionError(f"no seed catches {name}")


def shrunk(name: str, path: Path) -> tuple[RunPlan, Trials, Shrunk]:
    """Shrink the seed that catches a planted bug."""
    before, violation = caught(name)
    with planted(name):
        trials = Trials(before, kind_of(violation), in_this_process, seconds=MOST_SECONDS)
        shrink(trials)
        found = smallest(trials, before, path)
    assert found is not None
    return before, trials, found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == FASTEST else pytest.mark.soak) for name in TEN]
)
def test_a_planted_bug_leaves_a_short_scenario_that_fails_in_the_same_way(name: str, tmp_path: Path) -> None:
    path = tmp_path / "seed.yaml"
    before, trials, found = shrunk(name, path)
    assert len(trials.best.happenings) <= min(MOST_EVENTS, len(before.happenings))
    path.write_text(found.text, encoding="utf-8")
    [scenario] = load(path)
    with planted(name):
        outcome = runner.run(scenario)
    assert outcome.violation is not None
    assert outcome.violation.startswith(trials.kind)
    assert runner.run(scenario).has_succeeded


def test_a_scenario_tells_what_it_is() -> None:
    before, _, found = shrunk("no_epoch_bump", Path("seed-1.yaml"))
    comments = [line for line in found.text.splitlines() if line.startswith("#")]
    assert comments[0].startswith(f"# Seed {before.seed} violates an invariant.")
    assert comments[-1].startswith("# Shrunk from ")
    assert "klamm simulate seed-1.yaml" in comments[-1]
    said = list(found.lines())
    assert any(line.split()[:1] == ["time"] for line in said)
    assert any(" > " in line for line in said)


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        path = free_path(17, tmp_path)
        path.touch()
        names.append(path.name)
    assert names == ["seed-17.yaml", "seed-17-2.yaml", "seed-17-3.yaml"]


def main() -> None:
    """Print the table of the planted bugs."""
    total = 0
    print(f"{'planted bug':50} {'seed':>4} {'before':>6} {'after':>5} {'runs':>4} {'seconds':>7}")
    for name in TEN:
        before, trials, _ = shrunk(name, Path("seed.yaml"))
        after = len(trials.best.happenings)
        total += after
        sizes = f"{len(before.happenings):6} {after:5} {trials.runs:4} {trials.spent:7.1f}"
        print(f"{name:50} {before.seed:4} {sizes}")
    print(f"{total / len(TEN):.1f} events on average")


if __name__ == "__main__":
    main()
