"""Default placement: even, spread over racks, and continued when a topic grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from controller.model.placement import Start, Unplaceable, next_start, place_replicas

STARTS = st.builds(Start, st.integers(0, 20), st.integers(0, 20))


def without_racks(brokers: int) -> dict[int, str | None]:
    return dict.fromkeys(range(1, brokers + 1))


def in_racks(racks: int, brokers_per_rack: int) -> dict[int, str | None]:
    return {id_: f"rack-{id_ % racks}" for id_ in range(racks * brokers_per_rack)}


def spread(ids: Iterable[int], brokers: Iterable[int]) -> int:
    counts = Counter(dict.fromkeys(brokers, 0))
    counts.update(ids)
    return max(counts.values()) - min(counts.values())


def test_followers_shift_by_one_with_each_time_round() -> None:
    """The example of Kafka's documentation: five brokers, ten partitions."""
    placed = place_replicas(dict.fromkeys(range(5)), range(10), 3, Start(0, 0))
    assert list(placed.values()) == [
        (0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1),
        (0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1), (4, 1, 2),
    ]  # fmt: skip


def test_brokers_of_different_racks_take_turns() -> None:
    """The example of KIP-36: six brokers in three racks."""
    racks: dict[int, str | None] = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    placed = place_replicas(racks, range(6), 3, Start(0, 0))
    assert [replicas[0] for replicas in placed.values()] == [0, 3, 1, 5, 4, 2]
    assert placed[0] == (0, 3, 1)
    assert all({racks[id_] for id_ in replicas} == {"rack1", "rack2", "rack3"} for replicas in placed.values())


@given(st.integers(1, 12), st.integers(1, 40), st.data(), STARTS)
def test_leaders_and_replicas_are_spread_evenly(
    brokers: int, partitions: int, data: st.DataObject, start: Start
) -> None:
    factor = data.draw(st.integers(1, brokers))
    there = without_racks(brokers)
    placed = place_replicas(there, range(partitions), factor, start)
    assert list(placed) == list(range(partitions))
    assert all(len(set(replicas)) == len(replicas) == factor for replicas in placed.values())
    assert spread((replicas[0] for replicas in placed.values()), there) <= 1
    if partitions % brokers == 0:
        assert spread((id_ for replicas in placed.values() for id_ in replicas), there) == 0


@given(st.integers(2, 8), st.integers(1, 3), STARTS)
def test_the_leaders_of_one_broker_are_followed_by_all_others_equally_often(
    brokers: int, times_round: int, start: Start
) -> None:
    there = without_racks(brokers)
    placed = place_replicas(there, range(brokers * (brokers - 1) * times_round), 2, start)
    assert Counter(placed.values()) == dict.fromkeys(permutations(there, 2), times_round)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 6), st.data(), STARTS)
def test_a_partitions_replicas_are_on_as_many_racks_as_can_be(
    racks: int, brokers_per_rack: int, rounds: int, data: st.DataObject, start: Start
) -> None:
    there = in_racks(racks, brokers_per_rack)
    factor = data.draw(st.integers(1, len(there)))
    placed = place_replicas(there, range(rounds * len(there)), factor, start)
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        assert len({there[id_] for id_ in replicas}) == min(factor, racks)
    assert spread((replicas[0] for replicas in placed.values()), there) == 0
    if factor <= racks:
        assert spread((int(str(there[id_])[5:]) for ids in placed.values() for id_ in ids), range(racks)) == 0


@given(st.integers(1, 8), st.integers(1, 20), st.integers(0, 20), st.integers(0, 7))
def test_a_topic_that_grows_goes_on_dealing_leaders(brokers: int, before: int, added: int, index: int) -> None:
    there = without_racks(brokers)
    first = place_replicas(there, range(before), 1, Start(index, index))
    grown = place_replicas(there, range(before, before + added), 1, next_start(there, first[0]))
    assert {**first, **grown} == place_replicas(there, range(before + added), 1, Start(index, index))


def test_growth_begins_at_the_next_broker_where_the_first_leader_is_gone() -> None:
    assert next_start({1: None, 4: None, 6: None}, (3, 1)) == Start(1, 1)
    assert next_start({1: None, 4: None, 6: None}, (9,)) == Start(0, 0)


@pytest.mark.parametrize(
    ("brokers", "factor", "text"),
    [
        ({}, 1, "replication factor 1 is not between 1 and the 0 live brokers"),
        ({1: None}, 2, "replication factor 2 is not between 1 and the 1 live brokers"),
        ({1: None}, 0, "replication factor 0 is not between 1 and the 1 live brokers"),
        ({2: None, 1: "a", 3: None}, 1, "brokers [2, 3] have no rack though others have one: give every broker a rack"),
    ],
)
def test_what_cannot_be_placed_is_said(brokers: dict[int, str | None], factor: int, text: str) -> None:
    with pytest.raises(Unplaceable) as refusal:
        place_replicas(brokers, range(1), factor, Start(0, 0))
    assert str(refusal.value).startswith(text)
