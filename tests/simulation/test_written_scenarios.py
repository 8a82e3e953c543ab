"""Plans of random runs as scenarios: whatever a seed draws can be written to a file, and read back."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

import pytest
import yaml
from attrs import evolve
from jsonschema import Draft202012Validator

from simulator.random_run import topology
from simulator.random_run.features import FEATURES, Feature
from simulator.random_run.plan import RunPlan, draw
from simulator.random_run.run import run as run_plan
from simulator.scenario.disorder import plan_of
from simulator.scenario.faults import ScenarioFault
from simulator.scenario.language import schema
from simulator.scenario.loader import parse
from simulator.scenario.model import Scenario
from simulator.scenario.runner import run
from simulator.scenario.table import WIDTH, lines
from simulator.scenario.writer import write_plan
from simulator.scheduling import generator

DOCS = Path(__file__).parents[2] / "docs" / "simulation.md"
DISORDERED = """
in_order: false
topics: {orders: [[1, 2, 3]]}
lasts: 10s
events:
  - at: 1s
    when: orders-0 commits U1
    after: 10ms
    crash: controller
    for: 3s
    then: [{start: same}]
  - at: 2s
    reassign: {orders-0: [2, 3, 1]}
  - at: 1s
    reassign: {nowhere-0: [9]}
  - at: 3s
    crash: leader of nowhere-0
"""


def read(text: str) -> Scenario:
    [scenario] = parse(text, "x.yaml")
    return scenario


def bare(plan: RunPlan) -> RunPlan:
    """Return a plan without what does not matter: the features drawn, and the rate of no producers."""
    return evolve(plan, features=(), records_per_second=plan.records_per_second if plan.load else 0.0)


@pytest.mark.parametrize("feature", FEATURES, ids=[feature.name for feature in FEATURES])
def test_whatever_a_feature_draws_reads_back_as_it_was_written(feature: Feature) -> None:
    plan = bare(draw(6))
    partitions = topology.partitions_of(plan.topics)
    draws = [feature.draw(generator(seed, feature.name), plan.settings, partitions, 20.0) for seed in range(4)]
    happenings = sorted((each for drawn in draws for each in drawn), key=attrgetter("at"))
    assert happenings
    crowded = evolve(plan, happenings=tuple(happenings))
    assert plan_of(read(write_plan(crowded)), plan.seed) == crowded


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_drawn_reads_back_as_it_was_written(seed: int) -> None:
    plan = draw(seed)
    scenario = read(write_plan(plan))
    assert plan_of(scenario, seed) == bare(plan)
    assert scenario.seed == seed


def test_what_is_written_fits_the_schema() -> None:
    # `test_scenarios` checks the schema itself, which takes much longer.
    Draft202012Validator(schema()).validate(yaml.safe_load(write_plan(draw(3))))


def test_a_written_plan_runs_as_the_seed_does() -> None:
    plan = draw(4)
    outcome = run(read(write_plan(plan)))
    assert outcome.trace.digest == run_plan(plan).digest
    assert max(map(len, lines(outcome))) <= WIDTH


def test_events_that_are_not_in_order_have_times_of_their_own_and_may_be_impossible() -> None:
    outcome = run(read(f"{DISORDERED}expect:\n  orders-0: {{replicas: [2, 3, 1], leader: 3}}\n"))
    said = "\n".join(lines(outcome))
    assert [miss.text for miss in outcome.chronicle.misses] == ["orders-0: leader is 1, expected 3"]
    assert "1.000 > reassign nowhere-0: [9]" in said
    assert "refused: UNKNOWN_TOPIC_OR_PARTITION" in said
    assert "3.000 > refused: no node is 'leader of nowhere-0' now" in said


def test_the_scenario_that_the_docs_show_runs() -> None:
    [text] = re.findall(r"```yaml\n(# Seed .*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert run(read(text)).has_succeeded


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("{expect: {orders-0: {leader: 1}}}", "does something and expects nothing"),
        ("{crash: 1, expect: {orders-0: {leader: 1}}}", "expects nothing: write expect at the end"),
        ("{after: 1s, crash: 1}", "write at instead of after"),
        ("{when: orders-0 reaches U1, crash: 1}", "write commits or publishes"),
        ("{crash: 9}", "there is no node '9'"),
        ("{crash: 1, for: 3s}", "for and then belong together"),
        ("{reassign: {orders-0: [1]}, for: 3s, then: [{heal: true}]}", "for and then belong together, with a fault"),
        ("{crash: 1, for: 3s, then: [{cancel: orders-0}]}", "write what happens at once"),
        ("{in_turn: [{crash: 1, restart: 1}]}", "write one action here"),
    ],
)
def test_an_event_that_makes_no_sense_is_told_with_its_line(event: str, said: str) -> None:
    with pytest.raises(ScenarioFault, match=f"x.yaml:5:.*{said}"):
        parse(f"in_order: false\ntopics: {{orders: [[1, 2, 3]]}}\nlasts: 1s\nevents:\n  - {event}\n", "x.yaml")


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ("expire: controller", "mend_disk: same", "is not a broker"),
        ("expire: leader of a-0", "hold_queue: same", "is not a controller"),
    ],
)
def test_what_only_other_nodes_can_do_is_missed(first: str, then: str, said: str) -> None:
    outcome = run(read(f"topics: {{a: [[1, 2]]}}\nevents:\n  - {{{first}}}\n  - {{{then}}}\n"))
    [miss] = outcome.chronicle.misses
    assert miss.text.endswith(said)


def test_in_order_a_fault_ends_by_itself_and_the_run_waits_for_it() -> None:
    scenario = read("topics: {a: [[1, 2]]}\nevents:\n  - {crash: 1, for: 30s, then: [{start: same}]}\n")
    outcome = run(scenario)
    assert (outcome.seconds > 30, outcome.partitions[0].leader_epoch, outcome.chronicle.misses) == (True, 1, [])


def test_in_order_a_step_is_watched_from_a_time_on_and_struck_after_a_delay() -> None:
    scenario = read("""
topics: {a: [[1, 2]]}
events:
  - {at: 5s, reassign: {a-0: [3, 2]}}
  - {at: 4s, when: a-0 commits U1, after: 2s, depose: true}
lasts: 20s
""")
    outcome = run(scenario)
    assert outcome.has_succeeded
    [deposed] = [line for line in lines(outcome) if "> depose" in line]
    assert 7 < float(deposed.split()[0]) < 8
    assert outcome.seconds >= 20
