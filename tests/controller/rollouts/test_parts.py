"""Plans in parts, of which few are in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from attrs import define
from structlog.testing import capture_logs

from controller.events import RolloutLook, ZkPartitionReassignment
from tests.controller.rollouts.operator import ORIGIN, TARGET, Operator
from transport.messages import (
    ChangeRolloutRequest,
    ChangeRolloutResponse,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    StartRolloutResponse,
    UploadRolloutRequest,
    UploadRolloutResponse,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import paths
from transport.store.protocol import Set, Znode


async def test_what_is_remembered_of_moves_by_hand_is_looked_through_a_few_parts_at_a_time(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.rollout_overrides._LOOKED_THROUGH", 2)
    monkeypatch.setattr("controller.handlers.rollout_overrides.READ_AT_ONCE", 1)
    await large.start()
    monkeypatch.setattr("controller.handlers.rollouts.LOOKED_AHEAD", 0)
    bench, read, at_once = large.operator.bench, large.operator.bench.store.read, []

    async def noting(wanted: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        at_once.append([path for path in wanted if path.startswith(f"{paths.rollout_plans('monday')}/")])
        return await read(wanted, watch=watch)

    monkeypatch.setattr(bench.store, "read", noting)
    await bench.request_moves({TopicPartition("orders", number): (5, 6) for number in (0, 1, 2, 11)})
    await bench.handle(ZkPartitionReassignment())
    parts = [[paths.rollout_plan("monday", first)] for first in (5, 10, 15)]
    assert [found for found in at_once if found] == parts
    rollout = bench.context.rollouts.by_name["monday"]
    assert (set(rollout.by_hand), rollout.sifting) == ({TopicPartition("orders", 11)}, None)


@define
class Large:
    """A rollout whose plan has several parts, of which only the first is read while enough moves wait in it."""

    operator: Operator

    async def start(self, target: Callable[[int], tuple[int, ...]] = lambda _: TARGET) -> None:
        """Start it: four parts of five moves each."""
        for first in range(0, 20, 5):
            moves = tuple(RolloutMove("orders", number, target(number)) for number in range(first, first + 5))
            await self.operator.bench.ask(UploadRolloutRequest("monday", "digest", first, moves), UploadRolloutResponse)
        settings = RolloutSettings(into=2)
        await self.operator.bench.ask(StartRolloutRequest("monday", "digest", 20, settings), StartRolloutResponse)

    @property
    def open(self) -> list[int]:
        """The parts that are in memory."""
        return list(self.operator.bench.context.rollouts.by_name["monday"].parts)


@pytest.fixture
def large(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Large:
    monkeypatch.setattr("controller.handlers.rollouts.LOOKED_AHEAD", 2)
    return Large(operator)


async def test_a_plan_is_read_part_by_part_and_forgotten_again(large: Large) -> None:
    await large.start()
    assert large.open == [0]
    seen = [large.open]
    while large.operator.in_flight():
        await large.operator.catch_up(large.operator.in_flight()[0])
        seen.append(large.open)
    assert [parts for parts, before in pairwise(reversed(seen)) if parts != before] == [
        [],
        [15],
        [10, 15],
        [10],
        [5, 10],
        [5],
        [0, 5],
    ]
    assert (await large.operator.describe()).counts == (("done", 20),)


@pytest.mark.parametrize(("most", "opened"), [(20, [0, 5, 10]), (8, [0, 5]), (5, [0])])
async def test_moves_that_cannot_begin_keep_others_out_of_memory_only_if_they_are_very_many(
    large: Large, monkeypatch: pytest.MonkeyPatch, most: int, opened: list[int]
) -> None:
    monkeypatch.setattr("controller.handlers.rollouts.MOST_STUCK", most)
    await large.operator.bench.kill(5)
    await large.start(lambda number: (3, 5) if number < 10 else TARGET)
    assert large.open == opened
    assert large.operator.in_flight() == ([10, 11] if 10 in opened else [])


async def test_moves_behind_others_that_cannot_end_keep_no_others_out_of_memory(large: Large) -> None:
    await large.start(lambda number: (3, 4) if number < 2 else (3, 2) if number < 5 else (5, 2))
    assert (large.open, large.operator.in_flight()) == ([0], [0, 1])
    await large.operator.bench.kill(4)
    request = ChangeRolloutRequest("monday", RolloutOrder.RESUME, without_dead=True)
    await large.operator.bench.ask(request, ChangeRolloutResponse)
    await large.operator.bench.handle(RolloutLook())
    assert (large.open, large.operator.in_flight()) == ([0, 5], [0, 1, 5, 6])


async def test_the_next_controller_reads_the_open_parts_only(large: Large) -> None:
    await large.start()
    await large.operator.catch_up()
    await large.operator.catch_up()
    before = (large.open, large.operator.in_flight(), (await large.operator.describe()).counts)
    await large.operator.fail_over()
    assert (large.open, large.operator.in_flight(), (await large.operator.describe()).counts) == before
    await large.operator.finish()
    assert (await large.operator.describe()).counts == (("done", 20),)


async def test_the_next_controller_reads_states_and_open_parts_and_nothing_else(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    await large.start()
    await large.operator.catch_up()
    await large.operator.catch_up(2)
    assert large.open == [0, 5]
    store = large.operator.bench.store
    read = store.read
    found: list[str] = []

    async def noting(wanted: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        found.extend(path for path in wanted if path.startswith(paths.ROLLOUTS))
        return await read(wanted, watch=watch)

    monkeypatch.setattr(store, "read", noting)
    await large.operator.fail_over()
    assert large.open == [0, 5]
    expected = [paths.rollout("monday"), paths.rollout_strangers("monday")]
    for first in large.open:
        expected += [paths.rollout_plan("monday", first), paths.rollout_marks("monday", first)]
    assert found == expected


async def test_a_move_by_hand_counts_even_before_its_part_is_read(large: Large) -> None:
    await large.start()
    tp = TopicPartition("orders", 17)
    await large.operator.bench.move(tp, (5, 2))
    await large.operator.catch_up(17)
    await large.operator.bench.move(tp, ORIGIN)
    await large.operator.catch_up(17)
    await large.operator.fail_over()
    await large.operator.finish()
    assert (await large.operator.describe()).counts == (("done", 19), ("overridden", 1))
    assert await large.operator.bench.read_assignment(tp) == ReplicaAssignment(ORIGIN)


async def test_an_undo_reads_the_parts_again_that_have_something_to_take_back(large: Large) -> None:
    await large.start()
    for _ in range(4):
        await large.operator.catch_up()
    await large.operator.order(RolloutOrder.UNDO)
    await large.operator.fail_over()
    await large.operator.finish()
    described = await large.operator.describe()
    assert (described.phase, described.counts) == ("undone", (("pending", 12), ("back", 8)))


async def test_a_part_that_cannot_be_read_is_left_out(large: Large) -> None:
    await large.start()
    await large.operator.bench.store.multi([Set(paths.rollout_plan("monday", 10), b"damaged", -1)])
    with capture_logs() as logs:
        await large.operator.finish()
    assert [log["event"] for log in logs if log["log_level"] == "error"] == [
        "a part of a rollout is left out: it cannot be read"
    ]
    assert (await large.operator.describe()).counts == (("done", 15), ("failed", 5))
