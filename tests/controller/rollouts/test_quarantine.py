"""A rollout with a row that cannot be used is set aside: the office, other rollouts and topics go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from attrs import evolve
from hypothesis import example, given, strategies as st
from structlog.testing import capture_logs

from controller.monitoring import state_dump
from simulator.random_run.foreign_rows import (
    ABSURD_NAMES,
    ABSURD_VALUES,
    ROLLOUT,
    ROLLOUT_ROWS,
    SOUND_DATA,
    Row,
    places,
    with_field,
    with_key,
)
from tests.controller.conftest import Bench, new_bench
from tests.controller.rollouts.operator import ORIGIN, Operator, settings
from tests.kit.examples import examples
from transport.errors import ApiError
from transport.messages import DescribeRolloutMovesRequest, DescribeRolloutMovesResponse, RolloutMove, RolloutOrder
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import paths
from transport.store.protocol import ANY_VERSION, Create, Set
from transport.store.rollouts import StoredMarks, encode_marks
from transport.store.tree import Access


@asynccontextmanager
async def working() -> AsyncIterator[Operator]:
    """Give the block an operator with a rollout in the middle of its work."""
    async with new_bench(lambda: 0) as bench:
        await bench.start(*[ORIGIN] * 20)
        operator = Operator(bench)
        await operator.start(3, in_all=1, throttle=1_000)
        yield operator


async def write(bench: Bench, row: Row) -> None:
    """Write a row of a rollout behind the controller's back, and valid ones of all its others."""
    for path in sorted({*row.parents, row.path}):
        data = row.data if path == row.path else SOUND_DATA.get(path, b"")
        is_there = await bench.read(path) is not None
        if path == row.path or not is_there:
            await bench.store.multi([Set(path, data, ANY_VERSION) if is_there else Create(path, data)])


async def below(bench: Bench, name: str) -> list[str]:
    """Return what the store has of a rollout."""
    [found] = await bench.store.children([paths.ROLLOUTS])
    return [each for each in found or () if each == name]


async def require_alone(operator: Operator) -> None:
    """Require that a new controller carries on the rollout that is sound, and that the other one can be removed."""
    bench = operator.bench
    await operator.fail_over()
    await operator.finish()
    assert (await operator.describe()).counts == (("done", 3),)
    assert await bench.read_assignment(TopicPartition("orders", 2)) == ReplicaAssignment((3, 2))
    await bench.move(TopicPartition("orders", 9), (5, 6))
    await operator.catch_up()
    with suppress(ApiError):
        await bench.ask(DescribeRolloutMovesRequest(ROLLOUT), DescribeRolloutMovesResponse)
    if ROLLOUT in bench.context.rollouts.unusable:
        assert (await operator.describe(ROLLOUT)).fault
    elif ROLLOUT not in bench.context.rollouts.by_name:
        # A state without data is what an upload left that did not come to its end: the new controller removed it all.
        assert await below(bench, ROLLOUT) == []
        return
    elif not bench.context.rollouts.by_name[ROLLOUT].state.is_over:
        await operator.order(RolloutOrder.ABORT, name=ROLLOUT)
    await operator.order(RolloutOrder.REMOVE, name=ROLLOUT)
    assert await below(bench, ROLLOUT) == []


def row_with(kind: str, value: object, *place: str | int) -> Row:
    """Return a row of a rollout with this value in one of its fields."""
    row = ROLLOUT_ROWS[kind]
    return evolve(row, value=with_field(row.value, place, value))


SENSELESS = {
    "a phase that does not exist": (row_with("rollout state", "walking", "phase"), "phase must be one of"),
    "a hold that does not exist": (row_with("rollout state", ["fate"], "holds"), "holds must be among"),
    "a limit that is text": (row_with("rollout state", "5", "settings", "into"), "settings: into: Expected `int`"),
    "a limit of none": (row_with("rollout state", 0, "settings", "out_of"), "must be greater than 0"),
    "a switch that is a number": (row_with("rollout state", 1, "settings", "elects"), "settings: elects"),
    "a file that is a list": (row_with("rollout state", [1], "settings", "pause_file"), "settings: pause_file"),
    "a number beyond all": (row_with("rollout state", 10**30, "started_ms"), "started_ms must be"),
    "brokers that cannot be": (row_with("rollout state", [-1], "brokers"), "brokers must be broker ids"),
    "a state of moves": (row_with("rollout state", {"lost": 1}, "parts", 0, "tally"), "whose states cannot be"),
    "more moves than there are": (row_with("rollout state", {"done": 3}, "parts", 0, "tally"), "whose states cannot"),
    "parts that overlap": (row_with("rollout state", 1, "parts", 1, "first"), "overlap"),
    "a mark beyond all": (row_with("rollout marks", [2, 99], "marks"), "99 is not the state of a move"),
    "too few marks": (row_with("rollout marks", [2], "marks"), "marks 1 moves"),
    "a reason of no move": (row_with("rollout marks", {7: "a"}, "why"), "has a reason of a move 7"),
    "a move of no topic": (row_with("rollout moves", [["a b", ""]], 0), "a topic cannot have the name"),
    "a move to no brokers": (row_with("rollout moves", [[1, 2], []], 1), "the list of replicas is empty"),
    "a move to a broker twice": (row_with("rollout moves", [[1, 2], [3, 3]], 1), "names a broker twice"),
    "a partition below all": (row_with("rollout moves", -1, 3, 0), "there can be no partition -1"),
    "columns of other lengths": (row_with("rollout moves", [0], 3), "its columns do not fit each other"),
    "places from the end": (row_with("rollout moves", -1, 4, 0), "its columns do not fit each other"),
    "partitions that are none": (row_with("rollout by hand", [["a"]]), "damaged"),
}
"""Rows that decode and make no sense, with what is said of them."""


@pytest.mark.parametrize(("row", "fault"), SENSELESS.values(), ids=SENSELESS)
async def test_a_row_that_makes_no_sense_sets_its_rollout_aside(row: Row, fault: str) -> None:
    async with working() as operator:
        await write(operator.bench, row)
        await operator.fail_over()
        # The moves and marks of a rollout that waits for another are read when its turn has come.
        await operator.finish()
        assert fault in (await operator.describe(ROLLOUT)).fault
        await require_alone(operator)


async def test_what_cannot_be_used_is_named_and_takes_no_orders_but_its_removal(operator: Operator) -> None:
    await write(operator.bench, row_with("rollout state", "walking", "phase"))
    with capture_logs() as logs:
        await operator.fail_over()
    [logged] = [log for log in logs if log["log_level"] == "error"]
    assert logged["fault"].startswith(f"/klamm/rollouts/{ROLLOUT}: phase must be one of aborted, aborting, ")
    for order in set(RolloutOrder) - {RolloutOrder.REMOVE}:
        with pytest.raises(ApiError, match="`klamm rollout remove theirs-too` removes it"):
            await operator.order(order, name=ROLLOUT)
    for attempt in (operator.start(1, name=ROLLOUT), operator.states(ROLLOUT)):
        with pytest.raises(ApiError, match="is set aside"):
            await attempt
    await operator.order(RolloutOrder.REMOVE, name=ROLLOUT)
    await operator.start(1, name=ROLLOUT)
    await operator.finish()
    assert (await operator.describe(ROLLOUT)).counts == (("done", 1),)


async def test_marks_that_make_no_sense_leave_moves_in_flight_and_their_throttles_to_the_removal(
    operator: Operator,
) -> None:
    await operator.start(6, in_all=2, throttle=1_000)
    await operator.catch_up(0)
    marks = paths.rollout_marks("monday", 0)
    await operator.bench.store.multi([Set(marks, encode_marks(StoredMarks(bytes([99] * 6))), -1)])
    await operator.fail_over()
    await operator.start(1, name="tuesday", first=10)
    assert operator.in_flight() == [1, 2, 10]
    await operator.catch_up()
    assert operator.in_flight() == []
    assert "klamm.moves" in str(await settings(operator.bench, paths.topic_config("orders")))
    await operator.order(RolloutOrder.REMOVE)
    assert await settings(operator.bench, paths.topic_config("orders")) == {}
    for broker in (1, 2, 3):
        assert await settings(operator.bench, paths.broker_config(broker)) == {}


async def test_once_repaired_the_next_controller_carries_it_on(operator: Operator) -> None:
    await operator.start(6, in_all=2)
    path = paths.rollout_marks("monday", 0)
    sound = (await operator.bench.znode(path)).data
    await operator.bench.store.multi([Set(path, encode_marks(StoredMarks(b"")), -1)])
    await operator.fail_over()
    await operator.catch_up()
    assert (operator.in_flight(), (await operator.describe()).fault) == (
        [],
        f"{path}: marks 0 moves, and the state of the rollout says 6",
    )
    await operator.bench.store.multi([Set(path, sound, -1)])
    await operator.fail_over()
    await operator.finish()
    assert (await operator.describe()).counts == (("done", 6),)


async def test_a_state_that_may_not_be_read_is_quarantined_and_removed_once_it_may_be(operator: Operator) -> None:
    await operator.start(6, in_all=2)
    await operator.finish()
    tree, path = operator.bench.seen.zookeeper.tree, paths.rollout("monday")
    tree.allow(path, Access.NONE)
    await operator.fail_over()
    assert "may not be read" in (await operator.describe()).fault
    tree.allow(path, Access.ALL)
    await operator.order(RolloutOrder.REMOVE)
    assert await below(operator.bench, "monday") == []


@pytest.mark.parametrize(
    ("move", "fault"),
    [
        ({"size": 2**60}, "size must be in bytes"),
        ({"size": -2}, "size must be in bytes"),
        ({"before": (1, 1)}, "names a broker twice"),
    ],
)
async def test_what_would_be_quarantined_is_not_taken_into_a_plan(
    operator: Operator, move: dict[str, Any], fault: str
) -> None:
    answer = await operator.upload(RolloutMove("orders", 0, ORIGIN, **move))
    [left_out] = answer.left_out
    assert fault in left_out.message


async def test_settings_beyond_all_bounds_are_refused(operator: Operator) -> None:
    for settings_ in ({"in_all": 2**63}, {"throttle": 0}, {"pause_file": "x" * 40_000}):
        with pytest.raises(ApiError, match="must"):
            await operator.start(1, **settings_)


@st.composite
def damaged_rows(draw: st.DrawFn) -> Row:
    """Draw a row of a rollout with one absurdity: a value, a key, or the name of the rollout."""
    row = ROLLOUT_ROWS[draw(st.sampled_from(sorted(ROLLOUT_ROWS)))]
    at = sorted(places(row.value), key=str)
    keys = [place for place in at if isinstance(place[-1], str)]
    if keys and draw(st.sampled_from([True, False, False, False])):
        key = draw(st.sampled_from(ABSURD_NAMES))
        return evolve(row, value=with_key(row.value, draw(st.sampled_from(keys)), key))
    value = draw(st.sampled_from(ABSURD_VALUES))
    return evolve(row, value=with_field(row.value, draw(st.sampled_from([(), *at])), value))


@examples(40, 5_000)
@given(damaged_rows())
@example(evolve(ROLLOUT_ROWS["rollout state"], value=None, is_packed=False))
def test_whatever_others_write_into_any_field_costs_that_rollout_at_most(row: Row) -> None:
    async def check() -> None:
        async with working() as operator:
            await write(operator.bench, row)
            await require_alone(operator)

    trio.run(check)


@pytest.mark.parametrize(("row", "fault"), SENSELESS.values(), ids=SENSELESS)
async def test_the_state_dump_names_the_row(operator: Operator, row: Row, fault: str) -> None:
    await operator.start(3)
    await write(operator.bench, row)
    [found] = (await state_dump.dump(operator.bench.store))["undecodable"]
    assert found.startswith(row.path)
    assert fault in found
