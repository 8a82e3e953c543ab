"""Replica lists compared by column give the same result as one by one, with gaps and different widths."""

from __future__ import annotations

import numpy as np

from spark_bridge.model.block import NOBODY
from spark_bridge.model.lists import any_of, counts, lengths, nth, shared, widened

LISTS = np.array([[1, 2, 3], [4, NOBODY, NOBODY], [NOBODY, 5, 6]], np.int32)
OTHERS = np.array([[3, 1], [5, NOBODY], [6, 6]], np.int32)


def test_lists_have_as_many_replicas_as_places_that_somebody_holds() -> None:
    assert lengths(LISTS).tolist() == [3, 1, 2]
    assert counts(LISTS > 1).tolist() == [2, 1, 2]
    assert any_of(LISTS > 4).tolist() == [False, False, True]


def test_members_shared_are_those_of_the_other_list_of_the_same_partition() -> None:
    assert shared(LISTS, OTHERS).tolist() == [[True, False, True], [False, True, True], [False, False, True]]


def test_nothing_is_shared_with_lists_without_places() -> None:
    assert not shared(LISTS, OTHERS[:, :0]).any()
    assert not any_of(OTHERS[:, :0] == 0).any()


def test_a_widened_list_ends_with_nobody_and_is_a_copy() -> None:
    wide = widened(LISTS, 4)
    assert wide.tolist() == [[1, 2, 3, NOBODY], [4, NOBODY, NOBODY, NOBODY], [NOBODY, 5, 6, NOBODY]]
    assert wide.dtype == LISTS.dtype
    same = widened(LISTS, 3)
    same[0, 0] = 9
    assert LISTS[0, 0] == 1


def test_equal_members_of_a_list_are_numbered() -> None:
    racks = np.array([[1, 2, 1, 1], [3, 3, NOBODY, NOBODY]], np.int32)
    assert nth(racks).tolist() == [[1, 1, 2, 3], [1, 2, 1, 2]]
