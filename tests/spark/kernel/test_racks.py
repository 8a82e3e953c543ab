"""The limit on replicas of a partition in a rack, and the replicas beyond it."""

from __future__ import annotations

import numpy as np
import pytest

from spark_bridge.kernel.racks import rack_limits, surplus
from spark_bridge.model.block import NOBODY
from spark_bridge.model.goal import MOST_REPLICAS
from tests.spark.kernel.small import in_racks

_ = NOBODY


@pytest.mark.parametrize(
    ("racks", "nothing_new", "limits"),
    [
        ("aabbcc", "", [0, 1, 1, 1, 2, 2, 2]),
        ("aabb", "", [0, 1, 1, 2, 2]),
        ("aaaa", "", [0, 1, 2, 3, 4]),
        # Every broker without a rack is one of its own.
        ("____", "", [0, 1, 1, 1, 1]),
        ("aa__", "", [0, 1, 1, 1, 2]),
        # One rack is too small for its part: the others have to take more than ceil(RF / racks).
        ("abbbb", "", [0, 1, 1, 2, 3, 4]),
        ("abbccc", "", [0, 1, 1, 1, 2, 2, 3]),
        # A rack in which nobody receives is none.
        ("aabbcc", "45", [0, 1, 1, 2, 2]),
        ("aabbcc", "23", [0, 1, 1, 2, 2]),
        # Too few brokers whatever the limit.
        ("aab", "", [0, 1, 1, 2, 4, 5]),
        ("", "", [0, 1, 2, 3]),
    ],
)
def test_the_limit_of_a_rack_is_the_smallest_with_which_all_replicas_find_a_place(
    racks: str, nothing_new: str, limits: list[int]
) -> None:
    receives = np.array([str(b) not in nothing_new for b in range(len(racks))], np.bool_)
    found = rack_limits(in_racks(racks).rack, receives)
    assert found[: len(limits)].tolist() == limits
    assert len(found) == MOST_REPLICAS + 1


@pytest.mark.parametrize(
    ("replicas", "limit", "leave"),
    [
        ([0, 1, 2], 1, [1]),
        ([1, 0, 2], 1, [0]),
        ([0, 1, 2], 2, []),
        ([0, 2, 1, 3], 1, [2, 3]),
        ([0, 1, 6, 7], 1, [1]),
        ([0, 6, _, _], 1, []),
        # Equally full: the earlier in the list stays.
        ([4, 5, 2], 1, [1]),
        ([5, 4, 2], 1, [1]),
    ],
)
def test_of_a_rack_that_has_too_many_the_emptiest_brokers_keep_theirs(
    replicas: list[int], limit: int, leave: list[int]
) -> None:
    rack = in_racks("aabbcc__").rack
    fullness = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.6, 0.7])
    found = surplus(np.array([replicas], np.int32), rack, np.array([limit], np.int32), fullness, np.zeros(8, np.bool_))
    assert np.flatnonzero(found[0]).tolist() == leave


def test_brokers_without_a_rack_never_have_too_many() -> None:
    alone, nobody = in_racks("___").rack, np.zeros(3, np.bool_)
    found = surplus(np.array([[0, 1, 2]], np.int32), alone, np.array([1], np.int32), np.ones(3), nobody)
    assert not found.any()


@pytest.mark.parametrize(
    ("replicas", "keeps", "leave"),
    [
        # The emptier one of two leaves if the other keeps what it has.
        ([0, 1], "1", [0]),
        # Two that keep theirs are too many, and both stay.
        ([0, 1, 2], "01", []),
        ([0, 1, 2, 3], "013", [2]),
    ],
)
def test_a_broker_that_keeps_its_replicas_keeps_them_in_a_rack_that_has_too_many(
    replicas: list[int], keeps: str, leave: list[int]
) -> None:
    kept = np.array([str(broker) in keeps for broker in range(4)], np.bool_)
    lists, limit = np.array([replicas], np.int32), np.array([1], np.int32)
    found = surplus(lists, in_racks("aabb").rack, limit, np.array([0.1, 0.2, 0.1, 0.2]), kept)
    assert np.flatnonzero(found[0]).tolist() == leave
