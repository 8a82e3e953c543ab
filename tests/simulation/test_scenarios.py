"""The library of scenarios, the language in which they are written, and the command that runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from attrs import fields_dict
from jsonschema import Draft202012Validator

from simulator.scenario.faults import ScenarioFault
from simulator.scenario.language import SETTINGS, schema
from simulator.scenario.loader import load, parse
from simulator.scenario.model import Scenario
from simulator.scenario.runner import run
from simulator.scenario.table import WIDTH, lines
from simulator.settings import Settings

LIBRARY = sorted((Path(__file__).parents[2] / "examples" / "scenarios").glob("*.yaml"))
VARIANTS = [
    pytest.param(
        scenario,
        id=" ".join([path.stem, *scenario.variant.values()]),
        marks=pytest.mark.soak if number % 10 else (),  # the soak alone runs nine of ten variants
    )
    for path in LIBRARY
    for number, scenario in enumerate(load(path))
]
MOVE = """
cluster: {brokers: 6}
topics: {orders: [[1, 2, 3]]}
events:
  - reassign: {orders-0: [4, 5, 6]}
"""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """Return what holds files to the schema, which takes a thousand times longer to check than a file does."""
    Draft202012Validator.check_schema(schema())
    return Draft202012Validator(schema())


@pytest.mark.requirement("A4", "A5", "A6", "A7", "A8", "A9", "A10", "A11")
@pytest.mark.parametrize("scenario", VARIANTS)
def test_what_a_scenario_of_the_library_expects_comes_about(scenario: Scenario) -> None:
    outcome = run(scenario)
    assert outcome.violation is None
    assert outcome.chronicle.misses == []
    assert max(map(len, lines(outcome))) <= WIDTH


@pytest.mark.parametrize("path", LIBRARY, ids=[path.stem for path in LIBRARY])
def test_the_library_fits_the_schema(path: Path, validator: Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_every_setting_of_a_cluster_can_be_given() -> None:
    assert set(SETTINGS) == set(fields_dict(Settings)) - {"service", "own_apis"}


def test_the_same_seed_gives_the_same_trace() -> None:
    [scenario] = parse(MOVE, "move.yaml")
    digests = [run(scenario, seed=seed).trace.digest for seed in (7, 7, 8)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("orders-0: {leader: 1}", "orders-0: leader is 4, expected 1"),
        ("orders-0: {replicas: [6, 5, 4]}", "orders-0: replicas is [4, 5, 6], expected [6, 5, 4]"),
        ("skips: {orders-0: [B4]}", "orders-0: B4 was decided, but must be skipped"),
        ("disks: {4: []}", "the disk of broker 4 holds [orders-0], expected []"),
        ("controller: 9", "expected 9"),
    ],
)
def test_what_is_expected_and_does_not_come_about_is_told_with_its_line(expected: str, text: str) -> None:
    [scenario] = parse(f"{MOVE}expect:\n  {expected}\n", "move.yaml")
    outcome = run(scenario)
    assert not outcome.has_succeeded
    [miss] = outcome.chronicle.misses
    assert (miss.line, text in miss.text) == (7, True)


def test_a_refusal_that_nobody_expects_is_a_miss() -> None:
    [scenario] = parse(MOVE.replace("reassign: {orders-0: [4, 5, 6]}", "cancel: orders-0"), "move.yaml")
    [miss] = run(scenario).chronicle.misses
    assert miss.text.startswith("cancel orders-0: it was refused: NO_REASSIGNMENT_IN_PROGRESS")


def test_topics_that_cannot_be_created_are_told_with_their_line() -> None:
    [scenario] = parse("cluster: {brokers: 3}\ntopics: {orders: [[1, 9]]}\n", "move.yaml")
    [miss] = run(scenario).chronicle.misses
    assert miss.line == 2
    assert miss.text.startswith("topic orders was refused: INVALID_REPLICA_ASSIGNMENT: replicas [1, 9] of partition 0")


def test_an_event_that_comes_too_late_for_its_time_is_a_miss() -> None:
    [scenario] = parse("events:\n  - {at: 3s, crash: 1}\n  - {at: 1s, restart: 1}\n", "late.yaml")
    [miss] = run(scenario).chronicle.misses
    assert (miss.line, miss.text) == (3, "restart 1: it happened at 3.000 s, not at 1 s")


def test_a_cluster_that_does_not_start_is_told() -> None:
    [scenario] = parse("cluster: {latency: 100s}", "slow.yaml")
    assert run(scenario).violation == "the start of the cluster did not happen within 60 s"


@pytest.mark.parametrize(
    ("wrong", "place", "text"),
    [
        ("events:\n  - reasign: {orders-0: [1]}", (2, 5), "unknown key reasign: did you mean reassign?"),
        ("events:\n  - restart: {1: 2}", (2, 14), "expected a node, found a mapping"),
        ("events:\n  - crash: 9", (2, 12), "there is no node '9': there are brokers 1 to 3"),
        ("events:\n  - {crash: 1, at: soon}", (2, 20), "expected a time such as 3s, 500ms or 2m, found 'soon'"),
        ("topics: {a: [[1]]}\nevents:\n  - {when: a-0 reaches A9, crash: 1}", (3, 12), "unknown round A9"),
        ("topics: {a: [[1]]}\nevents:\n  - cancel: a-1", (3, 13), "there is no partition 'a-1': did you mean a-0?"),
        ("events:\n  - {at: 1s, after: 1s, crash: 1}", (2, 14), "an event has one time: it has at already"),
        ("events:\n  - at: 1s", (2, 5), "nothing happens here"),
        ("settles: 1s\nsettles: 2s", (2, 1), "duplicate key settles, also in line 1"),
        ("events:\n  - {crash: 1, within: 1s}", (2, 16), "within applies to expectations"),
        ("load: 5", (1, 7), "no topic to write to: name one"),
        ("topics: {a: []}", (1, 13), "a topic has one partition or more"),
        ("matrix: {x: []}", (1, 9), "nothing would run"),
        ("events: [", (1, 10), "not valid YAML"),
        ("topics:\n  a\0: [[1]]", (2, 4), "not valid YAML: special characters are not allowed"),
        ("&a\ntopics: *a", (1, 1), "an alias contains itself"),
        ("", (1, 1), "the file is empty"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_its_cure(wrong: str, place: tuple[int, int], text: str) -> None:
    with pytest.raises(ScenarioFault) as caught:
        parse(wrong, "wrong.yaml")
    [fault] = caught.value.faults
    assert ((fault.line, fault.column), text in fault.text) == (place, True), fault
    assert str(caught.value).startswith(f"wrong.yaml:{place[0]}:{place[1]}: ")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ScenarioFault) as caught:
        parse("cluster: {brokers: many}\nevents:\n  - crsh: 1\n  - {at: x, crash: 1}\nexpct: {}", "wrong.yaml")
    assert [fault.line for fault in caught.value.faults] == [1, 3, 4, 5]
