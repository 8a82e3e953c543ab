"""One vocabulary of actions: what a test does to a cluster, a scenario can say, and the other way round."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from klamm.testing import actions, open_cluster
from klamm.testing.actions import AddPartitions, CannotBeDone, Crash, CreateTopics, Pause, Request, Start, Strike
from simulator.process import ProcessState
from simulator.scenario.loader import parse
from simulator.scenario.runner import run
from simulator.scenario.verbs import VERBS

BASES = {Strike, Request}
PARTS = {CreateTopics: "CreateTopic"}
"""Verbs of several topics at once: by what a test calls one of them."""


def outcome_of(text: str) -> list[str]:
    """Run a scenario and return what it missed."""
    [scenario] = parse(text, "this.yaml")
    outcome = run(scenario)
    return [*(miss.text for miss in outcome.chronicle.misses), *([outcome.violation] if outcome.violation else [])]


def test_every_action_has_a_verb_and_every_verb_an_action() -> None:
    named = {value for name in actions.__all__ if isinstance(value := getattr(actions, name), type)}
    public = {kind for kind in named if issubclass(kind, Strike | Request)} - BASES
    assert {verb.kind.__name__ for verb in VERBS.values()} == {kind.__name__ for kind in public} - {*PARTS.values()}


def test_every_verb_says_what_it_does() -> None:
    assert [name for name, verb in VERBS.items() if not verb.text.endswith(".")] == []


def test_a_scenario_adds_partitions() -> None:
    missed = outcome_of(
        """
        topics: {orders: [[1, 2, 3]]}
        events:
          - add_partitions: {orders: 3}
          - expect: {orders-2: {leader: [1, 2, 3]}}
            within: 5s
        """
    )
    assert missed == []


async def test_a_test_adds_partitions(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2, 3]])
        await AddPartitions({"orders": 3}).on(c)
        await c.until(lambda: c.partition("orders-2") is not None)


async def test_words_mean_who_they_mean_now(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        await c.create_topic("orders", [[2, 3]])
        await c.until(lambda: c.partition("orders-0") is not None)
        Crash("leader of orders-0", noticed=True).on(c)
        Pause("controller").on(c)
        frozen = [process.id for process in c.processes() if process.state is ProcessState.PAUSED]
        assert c.process(2).state is ProcessState.DEAD
        assert frozen == [c.active_controller]
        Start((1, 2)).on(c)
        assert c.process(2).state is ProcessState.RUNNING


async def test_an_action_about_nobody_cannot_be_done(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with open_cluster() as c:
        with pytest.raises(CannotBeDone, match="nobody is 'leader of orders-0' now"):
            Crash("leader of orders-0").on(c)
