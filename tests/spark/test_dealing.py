from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, product

from hypothesis import given
from hypothesis import strategies as st

from spark_bridge.dealing import Demand, deal
from spark_bridge.evenness import Places, fill

BROKERS = (1, 2, 3, 4)
barred = st.frozensets(st.sampled_from(BROKERS), max_size=3)
loads = st.fixed_dictionaries({b: st.integers(0, 4) for b in BROKERS})


def ways(demand: Demand) -> list[Counter[int]]:
    hands = (Counter(hand) for hand in combinations_with_replacement(BROKERS, demand.count))
    return [hand for hand in hands if all(n <= demand.limit(b) for b, n in hand.items())]


def squares(load: dict[int, int], hands: list[Counter[int]]) -> int:
    return sum((load[b] + sum(hand[b] for hand in hands)) ** 2 for b in BROKERS)


@given(st.lists(st.builds(Demand, st.integers(0, 3), barred), max_size=3), loads)
def test_no_deal_is_more_even(demands: list[Demand], load: dict[int, int]) -> None:
    hands = deal(demands, load, BROKERS)
    assert [hand.total() for hand in hands] == [d.count for d in demands]
    assert all(n <= d.limit(b) for d, hand in zip(demands, hands, strict=True) for b, n in hand.items())
    assert squares(load, hands) == min(squares(load, list(other)) for other in product(*map(ways, demands)))


def test_units_shift_along_chains_of_demands() -> None:
    # Each demand alone would fill its emptiest broker; only all four together leave two on each.
    demands = [Demand(2, frozenset({3, 4})), Demand(2, frozenset({1, 4})), Demand(2, frozenset({1, 2}))]
    load = {1: 0, 2: 0, 3: 0, 4: 2}
    hands = deal(demands, load, BROKERS)
    assert Counter(load) + sum(hands, Counter[int]()) == {1: 2, 2: 2, 3: 2, 4: 2}


def test_limits_hold_and_room_is_a_wish_before_evenness() -> None:
    assert deal([Demand(4, limits={1: 1, 2: 9})], dict.fromkeys(BROKERS, 0), BROKERS) == [{1: 1, 2: 3}]
    full = {1: 0, 2: 0, 3: 1, 4: 3}
    assert deal([Demand(4)], {1: 0, 2: 0, 3: 5, 4: 5}, BROKERS, room=full) == [{3: 1, 4: 3}]
    assert deal([Demand(5)], {1: 0, 2: 0, 3: 5, 4: 5}, BROKERS, room=full)[0].total() == 5


def test_of_equal_brokers_the_earlier_comes_first() -> None:
    assert deal([Demand(2)], dict.fromkeys(BROKERS, 0), (4, 2, 3, 1)) == [{4: 1, 2: 1}]


@given(
    st.lists(st.builds(Places, st.integers(0, 3), st.integers(0, 3), barred), max_size=3),
    loads,
    loads,
)
def test_leaders_cost_no_evenness_of_replicas(
    places: list[Places], replicas: dict[int, int], leaders: dict[int, int]
) -> None:
    filled = fill(places, replicas, leaders, BROKERS)
    assert [f.first.total() for f in filled] == [p.first for p in places]
    assert [f.later.total() for f in filled] == [p.later for p in places]
    both = [f.first + f.later for f in filled]
    assert all(b not in p.barred for p, hand in zip(places, both, strict=True) for b in hand)
    best = deal([Demand(p.first + p.later, p.barred) for p in places], replicas, BROKERS)
    assert squares(replicas, both) == squares(replicas, best)


def test_leaders_are_spread_among_brokers_with_equally_many_replicas() -> None:
    replicas, leaders = dict.fromkeys(BROKERS, 5), {1: 4, 2: 4, 3: 0, 4: 0}
    [filled] = fill([Places(first=2, later=2)], replicas, leaders, BROKERS)
    assert filled.first == {3: 1, 4: 1}
    assert filled.later == {1: 1, 2: 1}
    [filled] = fill([Places(first=2, later=0)], replicas, leaders, BROKERS)
    assert filled.first == {3: 1, 4: 1}
