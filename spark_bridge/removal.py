"""The Spark job that takes brokers out of all replica lists.

What is done for each partition is DataFrame expressions. What is decided for many partitions at once, which brokers
take how many, is an aggregate that the driver deals out. A round fills one open place (a place in a replica list with a
removed broker) of every partition that has the most of them:

1. Spark counts the open places by who may fill them: by the open racks in which the partition lies already, or, if that
   is all of them, by the staying brokers that hold it. With a few racks these counts are few.
2. The driver deals them out evenly (`evenness`).
3. Spark lays the brokers like cards on the open places in order of topic and partition, so that a topic's partitions
   go to different brokers.

There are as many rounds as the worst partition has removed brokers, and the last, in which every partition has one open
place, has the most to even out with. Within a round a partition gets one replica, by the step that `rules` shows to be
safe: no replica list ever breaks a rule, and nothing needs repair. Equal snapshots give equal plans: all orders are
total, nothing is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from attrs import field, frozen
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 (its name everywhere)

from spark_bridge.evenness import Places, fill
from spark_bridge.plan import BrokerLoad, Plan, Reassignment, as_ids
from spark_bridge.rules import Cluster
from spark_bridge.session import stage

_KIND = ["leads", "everywhere", "used"]
"""Columns that open places and cards share: is the place the first of its list; does the partition lie in every open
rack; and the open racks in which it lies or, if these are all, the staying brokers that hold it."""


@frozen
class _Loads:
    """What the brokers hold: replicas, and first places (preferred leaderships)."""

    replicas: Counter[int]
    leaders: Counter[int]

    def without(self, removed: frozenset[int]) -> _Loads:
        replicas, leaders = ({b: n for b, n in c.items() if b not in removed} for c in (self.replicas, self.leaders))
        return _Loads(Counter(replicas), Counter(leaders))


@frozen(order=True)
class _Kind:
    """Who may fill a place: the columns `everywhere` and `used`."""

    everywhere: bool
    used: tuple[int, ...] = field(converter=as_ids)

    def barred(self, cluster: Cluster) -> frozenset[int]:
        if self.everywhere:
            return cluster.barred(racks=frozenset(cluster.open_racks), holders=frozenset(self.used))
        return cluster.barred(racks=frozenset(self.used), holders=frozenset())

    def cards(self, hand: Counter[int], *, leads: bool) -> Iterator[dict[str, object]]:
        for broker, n in sorted(hand.items()):
            yield {"leads": leads, "everywhere": self.everywhere, "used": self.used, "broker": broker, "n": n}


def plan_removal(spark: SparkSession, cluster: Cluster, scratch: Path) -> Plan:
    """Give every replica on a removed broker another one.

    Args:
        spark: The session.
        cluster: A cluster and a removal that `rules.refuse` let pass.
        scratch: An empty folder for what passes between this process and Spark.
    """
    rows = ({"topic": p.topic, "partition": p.partition, "replicas": p.replicas} for p in cluster.snapshot.partitions)
    partitions = stage(spark, scratch / "partitions.jsonl", rows, "topic string, partition int, replicas array<int>")
    before = _count(partitions)
    after = before.without(cluster.removed)
    removed = F.lit(sorted(cluster.removed))
    lists = partitions.where(F.arrays_overlap("replicas", removed)).localCheckpoint()
    rounds = lists.agg(F.max(F.size(F.array_intersect("replicas", removed))).alias("n")).collect()[0].n or 0
    for most in range(rounds, 0, -1):
        places = _open_places(lists, cluster, most)
        hands = _deal(places, cluster, after)
        columns = "leads boolean, everywhere boolean, used array<int>, broker int, n int"
        lists = _fill(places, stage(spark, scratch / f"hands-{most}.jsonl", hands, columns)).localCheckpoint()
    changed = sorted((r.topic, r.partition, tuple(r.replicas)) for r in lists.collect())
    return Plan(tuple(Reassignment(*row) for row in changed), _report(cluster, before, after))


def _count(partitions: DataFrame) -> _Loads:
    placed = partitions.select(F.posexplode("replicas").alias("slot", "broker"))
    leads = F.count_if(F.col("slot") == 0)
    rows = placed.groupBy("broker").agg(F.count("*").alias("replicas"), leads.alias("leaders")).collect()
    return _Loads(Counter({r.broker: r.replicas for r in rows}), Counter({r.broker: r.leaders for r in rows}))


def _open_places(lists: DataFrame, cluster: Cluster, most: int) -> DataFrame:
    """Add to each list its first open place (`slot`; null if its open places are not `most`) and who may fill it."""
    removed, open_racks = sorted(cluster.removed), F.lit(list(cluster.open_racks))
    rack_of = F.create_map(*map(F.lit, chain.from_iterable(sorted(cluster.rack_of.items()))))

    def is_removed(broker: Column) -> Column:
        return broker.isin(removed)

    def rack(broker: Column) -> Column:
        return rack_of[broker]

    kept = F.array_except("replicas", F.lit(removed))
    racks = F.array_intersect(open_racks, F.transform(kept, rack))
    holders = F.array_intersect(F.lit(list(cluster.staying)), kept)
    everywhere = F.size(racks) == len(cluster.open_racks)
    is_turn = F.size(F.array_intersect("replicas", F.lit(removed))) == most
    slot = F.when(is_turn, F.array_position(F.transform("replicas", is_removed), F.lit(col=True)) - 1)
    return lists.select(
        "topic",
        "partition",
        "replicas",
        slot.alias("slot"),
        # Null, like the slot, where nothing is to fill in this round: such rows match no card.
        (slot == 0).alias("leads"),
        everywhere.alias("everywhere"),
        F.array_sort(F.when(everywhere, holders).otherwise(racks)).alias("used"),
    )


def _deal(places: DataFrame, cluster: Cluster, loads: _Loads) -> Iterator[dict[str, object]]:
    """Decide how many places of each kind every broker fills, and add them to the loads."""
    rows = places.where("leads is not null").groupBy(*_KIND).count().collect()
    wanted = {(_Kind(r.everywhere, r.used), r.leads): r["count"] for r in rows}
    kinds = sorted({kind for kind, _ in wanted})
    open_places = [Places(wanted.get((k, True), 0), wanted.get((k, False), 0), k.barred(cluster)) for k in kinds]
    for kind, filled in zip(kinds, fill(open_places, loads.replicas, loads.leaders, cluster.staying), strict=True):
        loads.replicas.update(filled.first + filled.later)
        loads.leaders.update(filled.first)
        yield from kind.cards(filled.first, leads=True)
        yield from kind.cards(filled.later, leads=False)


def _fill(places: DataFrame, hands: DataFrame) -> DataFrame:
    """Lay the brokers on the open places; lists without one stay as they are."""
    # A broker's cards lie evenly spaced over the deck, so that neighbours in a topic get different brokers.
    deck = Window.partitionBy(*_KIND).orderBy((F.col("card") - 0.5) / F.col("n"), "broker")
    cards = hands.withColumn("card", F.explode(F.sequence(F.lit(1), "n")))
    cards = cards.select(*_KIND, "broker", F.row_number().over(deck).alias("rank"))
    queue = Window.partitionBy(*_KIND).orderBy("topic", "partition")
    filled = places.withColumn("rank", F.row_number().over(queue)).join(cards, [*_KIND, "rank"], "left")

    def replace(broker: Column, slot: Column) -> Column:
        return F.when(slot == F.col("slot"), F.col("broker")).otherwise(broker)

    return filled.select("topic", "partition", F.transform("replicas", replace).alias("replicas"))


def _report(cluster: Cluster, before: _Loads, after: _Loads) -> tuple[BrokerLoad, ...]:
    racks = {b.id: b.rack for b in cluster.snapshot.brokers}
    return tuple(
        BrokerLoad(b, racks.get(b), before.replicas[b], after.replicas[b], before.leaders[b], after.leaders[b])
        for b in cluster.brokers
    )
