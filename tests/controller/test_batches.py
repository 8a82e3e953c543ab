"""Thousands of partitions at once: few multis, none over the store's limit."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.handlers import reassignments
from tests.controller.conftest import Bench
from transport.metadata import ReplicaAssignment

ORIGIN, TARGET = (1, 2, 3), (4, 5, 6)
MANY = 2500


@pytest.mark.requirement("A11")
async def test_thousands_of_moves_in_one_topic_are_cancelled(bench: Bench) -> None:
    await bench.start(*[ORIGIN] * MANY)
    tps = bench.context.partitions()
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(tps, TARGET)))
    bench.seen.clear()
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(tps, ORIGIN)))
    assert bench.context.reassigning == {}
    for tp in (tps[0], tps[-1]):
        assert await bench.read_assignment(tp) == bench.context.assignment(tp) == ReplicaAssignment(ORIGIN)
    assert len(bench.context.strays) == len(TARGET) * MANY
    assert len(bench.seen.commits) < MANY / 100


@pytest.mark.requirement("A11")
async def test_thousands_of_moves_in_one_topic_end_together(bench: Bench) -> None:
    await bench.start(*[ORIGIN] * MANY)
    tps = bench.context.partitions()
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(tps, TARGET)))
    for tp in tps:
        await bench.write_state(tp, evolve(bench.context.leadership[tp], isr=(*ORIGIN, *TARGET)))
    bench.seen.clear()
    await bench.fail_over()
    assert bench.context.reassigning == {}
    for tp in (tps[0], tps[-1]):
        assert await bench.read_assignment(tp) == bench.context.assignment(tp) == ReplicaAssignment(TARGET)
    assert len(bench.context.strays) == len(ORIGIN) * MANY
    # What a new controller found of each is in the trace, but is no commit.
    assert len([commit for commit in bench.seen.commits if commit.round != "loaded"]) < MANY / 100
