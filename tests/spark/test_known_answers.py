"""The known answers of other planners, in tests/fixtures: met or beaten."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import frozen

from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind
from tests.spark.planned import plan_blocks

FOLDER = Path(__file__).parent.parent / "fixtures"


@frozen
class KnownAnswer:
    """The plan for one of the files: lists of broker ids before and after, and the results of other tools."""

    expect: dict[str, Any]
    before: list[list[int]]
    after: list[list[int]]
    targets: list[int]

    @property
    def moves(self) -> int:
        """Return how many replicas get a new broker."""
        return sum(len(set(new) - set(old)) for old, new in zip(self.before, self.after, strict=True))

    @property
    def least_kept(self) -> int:
        """Return how many of its replicas every partition keeps at least."""
        return min(len(set(new) & set(old)) for old, new in zip(self.before, self.after, strict=True))

    @property
    def counts(self) -> list[int]:
        """Return how many replicas the target brokers hold, fewest first; no other broker holds any."""
        held = Counter(broker for replicas in self.after for broker in replicas)
        assert held.keys() <= set(self.targets)
        return sorted(held[broker] for broker in self.targets)


def answer(name: str) -> KnownAnswer:
    """Plan what the file asks for: brokers that are no target leave, those that have nothing are added."""
    document = json.loads((FOLDER / f"{name}.json").read_text())
    brokers = Brokers.of(Broker(row["id"], row["rack"]) for row in document["snapshot"]["brokers"])
    rows = sorted(document["snapshot"]["partitions"], key=lambda row: row["partition"])
    before = [row["replicas"] for row in rows]
    indices = [[brokers.index_of[broker] for broker in replicas] for replicas in before]
    none = [0] * len(rows)
    block = Block.of([(row["topic"], row["partition"]) for row in rows], indices, none, none, none)
    targets = set(document["target_brokers"])
    if leaving := frozenset(brokers.index_of) - targets:
        goal = Goal(GoalKind.REMOVE_BROKERS, leaving)
    else:
        goal = Goal(GoalKind.ADD_BROKERS, frozenset(targets.difference(*before)))
    (planned,) = plan_blocks([block], brokers, goal).blocks
    after = [[int(brokers.ids[b]) for b in replicas if b != NOBODY] for replicas in planned.after]
    return KnownAnswer(document["expect"], before, after, sorted(targets))


def test_decommission() -> None:
    made = answer("siftscience_decommission")
    assert made.counts == [2] * made.expect["brokers_with_2"] + [3] * made.expect["brokers_with_3"]
    assert made.least_kept >= made.expect["min_kept_per_partition"]
    assert made.moves == 2


def test_expansion() -> None:
    made = answer("siftscience_expansion")
    assert made.counts == [made.expect["each_broker_replicas"]] * 4
    assert made.least_kept >= made.expect["min_kept_per_partition"]
    assert made.moves == 2


def test_expansion_by_two_brokers_in_racks() -> None:
    made = answer("siftscience_rack_expansion")
    assert made.counts == [1] * made.expect["brokers_with_1"] + [2] * made.expect["brokers_with_2"]
    assert made.least_kept >= made.expect["min_kept_per_partition"]
    assert made.moves == 2


def test_replacement() -> None:
    made = answer("siftscience_replacement")
    assert (made.after[0] == made.before[0]) == made.expect["partition_0_unchanged"]
    assert made.least_kept >= made.expect["min_kept_per_partition"]
    assert made.moves == 3


def test_one_broker_of_twenty_leaves() -> None:
    made = answer("readme_remove_1_of_20")
    assert made.moves == made.expect["replica_moves"]


def test_two_brokers_are_added_to_three() -> None:
    made = answer("readme_expand_3_to_5")
    assert made.moves == made.expect["replica_moves"]
    assert made.counts == sorted(made.expect["broker_replicas"].values())
    leaders_kept = [new[0] == old[0] for old, new in zip(made.before, made.after, strict=True)]
    assert all(leaders_kept) == made.expect["leaders_kept"]
