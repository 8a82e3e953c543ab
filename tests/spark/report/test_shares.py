"""Brokers above their share after a plan, and the reasons."""

from __future__ import annotations

from attrs import evolve

from spark_bridge.model.summary import Evenness, Load, PlannedBroker, Summary
from spark_bridge.report.measures import BYTES, REPLICAS
from spark_bridge.report.shares import hottest, share_of, that_change_most
from tests.spark.report.clusters import growth

TERABYTE = 1_000_000_000_000


def broker(
    id_: int, after: Load, state: str = "live", capacity: float = 1.0, before: Load | None = None
) -> PlannedBroker:
    return PlannedBroker(id_, None, state, capacity, None, after if before is None else before, after)


def summary(*brokers: PlannedBroker) -> Summary:
    aimed = tuple(Evenness(name, 0.5, 0.1, 0.05) for name in ("replicas", "leaders", "bytes", "bytes in"))
    return evolve(growth(3, 1, 0, 1), brokers=brokers, evenness=aimed)


def test_a_hot_broker_is_told_by_the_measure_it_has_most_of() -> None:
    loads = [Load(replicas=102, bytes=round(1.199 * TERABYTE)), Load(replicas=98, bytes=round(1.001 * TERABYTE))]
    [hot] = hottest(summary(*(broker(i, load) for i, load in enumerate(loads))))
    assert hot.why == "bytes: 1.20 TB is 9 % above its share of 1.10 TB"
    assert (hot.broker.id, hot.beyond) == (0, True)


def test_the_hottest_come_first_and_equals_by_id() -> None:
    loads = {4: 130, 3: 130, 9: 150, 1: 70, 2: 20}
    made = summary(*(broker(id_, Load(replicas=load)) for id_, load in sorted(loads.items())))
    assert [hot.broker.id for hot in hottest(made)] == [9, 3, 4]
    assert [hot.broker.id for hot in hottest(made, most=2)] == [9, 3]


def test_a_share_follows_capacity() -> None:
    rows = (broker(1, Load(replicas=60), capacity=2.0), broker(2, Load(replicas=30)))
    assert share_of(rows, REPLICAS) == 30
    assert hottest(summary(*rows)) == ()


def test_whole_things_over_a_fraction_of_a_share_are_not_hot() -> None:
    rows = [broker(1, Load(replicas=2)), broker(2, Load(replicas=1)), broker(3, Load(replicas=1))]
    assert hottest(summary(*rows)) == ()
    assert [hot.broker.id for hot in hottest(summary(*rows, broker(4, Load(replicas=4))))] == [4]


def test_what_is_within_the_aim_is_told_apart() -> None:
    rows = [broker(1, Load(replicas=103)), broker(2, Load(replicas=97))]
    [hot] = hottest(summary(*rows))
    assert not hot.beyond


def test_an_excluded_broker_is_hot_for_what_it_keeps_and_shares_nothing() -> None:
    rows = [broker(1, Load(bytes=100)), broker(2, Load(bytes=100)), broker(3, Load(bytes=150), "excluded")]
    assert share_of(rows, BYTES) == 100
    [hot] = hottest(summary(*rows))
    assert hot.why == "bytes: 150 B is 50 % above its share of 100 B, and it is excluded: it keeps what it has"


def test_without_live_brokers_there_are_no_shares() -> None:
    assert hottest(summary(broker(1, Load(replicas=5), "excluded"))) == ()


def test_of_many_brokers_those_that_change_most_are_shown_by_id() -> None:
    rows = [
        broker(1, Load(replicas=100), before=Load(replicas=100)),
        broker(2, Load(replicas=100), before=Load(replicas=90)),
        broker(3, Load(replicas=100, bytes=10), before=Load(replicas=100, bytes=90)),
        broker(4, Load(replicas=100), before=Load(replicas=60)),
    ]
    made = summary(*rows)
    assert [b.id for b in that_change_most(made, 2)] == [3, 4]
    assert [b.id for b in that_change_most(made, 9)] == [2, 3, 4]
