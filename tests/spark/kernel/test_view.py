"""The cluster as a block sees it: turns, the dither, and the weights of the tallies."""

from __future__ import annotations

import numpy as np
import pytest

from spark_bridge.kernel.held import Held
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import BYTES, NOBODY, Block
from tests.spark.kernel.small import block_of, in_racks, terms_of

BLOCK = block_of([[0, 1], [1, 2], [2, 3], [3, 0]], size=[100, 200, 300, 400], bytes_in=[10, 10, 10, 10])
LOAD = np.array([[1000, 100_000, 9_000]] * 4)


def view_of(number: int, turn: Turn, block: Block = BLOCK, measures: tuple[int, ...] = (0, 1, 2)) -> View:
    return View.of(block, number, turn, terms_of([BLOCK], in_racks("____")), LOAD, measures)


@pytest.mark.parametrize(("blocks", "copies"), [(1, 1), (8, 8), (8, 3), (8, 1), (153, 19)])
def test_every_broker_takes_part_in_as_many_blocks_as_there_are_copies(blocks: int, copies: int) -> None:
    ranks = np.stack([Turn(3, blocks, copies).ranks(b, 50) for b in range(blocks)])
    # In each block a broker has another place: those below `copies` take part, one block for each.
    assert (np.sort(ranks, axis=0) == np.arange(blocks)[:, None]).all()
    active = np.stack([view_of(b, Turn(3, blocks, copies)).active for b in range(blocks)])
    assert (active.sum(axis=0) == copies).all()


def test_turns_pair_brokers_with_other_blocks_in_another_round() -> None:
    rounds = [Turn(r, 16, 2).ranks(0, 100).tolist() for r in range(3)]
    assert rounds[0] != rounds[1] != rounds[2] != rounds[0]
    assert rounds[0] == Turn(0, 16, 2).ranks(0, 100).tolist()


@pytest.mark.parametrize(("blocks", "copies"), [(8, 8), (8, 4), (9, 3), (2, 2)])
def test_the_dither_of_the_blocks_that_take_part_adds_up_to_nothing(blocks: int, copies: int) -> None:
    turn = Turn(1, blocks, copies)
    views = [view_of(b, turn) for b in range(blocks)]
    for broker in range(4):
        seen = np.array([view.load[broker] for view in views if view.active[broker]])
        off = seen - LOAD[broker]
        # Rounding to whole bytes leaves at most a half for each.
        assert (np.abs(off.sum(axis=0)) <= copies / 2).all()
        assert len({tuple(row) for row in off.tolist()}) == copies
        # From one to the next it is one replica of mean size.
        assert np.diff(np.sort(off[:, BYTES])).tolist() == [250] * (copies - 1)


def test_a_block_alone_sees_the_true_loads() -> None:
    assert view_of(2, Turn(1, 4, 1)).load == LOAD.tolist()
    assert view_of(0, Turn(0, 1, 1)).load == LOAD.tolist()


def test_an_empty_block_has_a_view_too() -> None:
    empty = Block.of([], [], [], [], [])
    assert len(view_of(0, Turn(1, 4, 4), empty).load) == len(LOAD)


def test_what_a_block_adds_counts_once_for_each_copy() -> None:
    view = view_of(0, Turn(0, 4, 4))
    before = [list(row) for row in view.load]
    view.add(2, [1, 300, 10], 1)
    assert view.load[2] == [before[2][0] + 4, before[2][1] + 1200, before[2][2] + 40]
    view.add(2, [1, 300, 10], -1)
    assert view.load == before


def test_fullness_is_the_greatest_part_of_a_share_among_the_measures_that_count() -> None:
    # 8 replicas, 2000 bytes and 80 bytes in for four brokers: shares of 2, 500 and 20.
    everything, in_bytes = view_of(0, Turn(0, 1, 1)), view_of(0, Turn(0, 1, 1), measures=(BYTES,))
    assert everything.full == pytest.approx([500.0] * 4)
    assert in_bytes.full == pytest.approx([200.0] * 4)
    in_bytes.add(1, [1, 500, 10_000], 1)
    assert in_bytes.full[1] == pytest.approx(201.0)


@pytest.mark.parametrize(("copies", "room", "fits"), [(1, 9, False), (1, 10, True), (4, 19, False), (4, 20, True)])
def test_with_many_copies_half_of_what_they_add_has_to_fit(copies: int, room: int, *, fits: bool) -> None:
    view = view_of(0, Turn(0, 4, copies))
    view.load[0] = [0, 100, 200]
    for measure in range(3):
        limit = [1_000] * 3
        limit[measure] = 100 * measure + room
        assert view.fits(0, [10, 10, 10], limit) is fits


def test_places_are_found_by_broker() -> None:
    held = Held.of(np.array([[2, 0, NOBODY], [1, 2, 0]], np.int32), 4)
    rows_and_columns = [list(zip(*(part.tolist() for part in held.by(b)), strict=True)) for b in range(4)]
    assert rows_and_columns == [[(0, 1), (1, 2)], [(1, 0)], [(0, 0), (1, 1)], []]
