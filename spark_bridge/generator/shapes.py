"""The shapes of clusters: how many of what, and what they were like when their replicas were placed.

The first three are the random clusters that Cruise Control's tests plan for, with their parameters. The others have the
sizes of clusters that operators told of in public.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from attrs import frozen

from spark_bridge.errors import PlanError


class Placement(StrEnum):
    """How likely a broker was to be given a replica; racks were kept apart always."""

    UNIFORM = "uniform"  # all alike
    LINEAR = "linear"  # the n-th n times as likely as the first
    EXPONENTIAL = "exponential"  # the n-th of N with (n/N)^2 as the sum up to it: what Cruise Control calls so
    HISTORY = "history"  # all alike that were there when the topic was created: older brokers are fuller


_MOST: Final = {"brokers": 100_000, "new_brokers": 100_000, "racks": 100_000, "partitions": 100_000_000}
"""Far more than any cluster has; a larger number is a mistake, and would fill the machine's memory."""


@frozen
class Shape:
    """What to generate.

    Attributes:
        brokers: How many brokers have replicas; their ids begin at 1.
        racks: Into how many racks they are dealt in turn; 0 for brokers that tell none.
        topics: How many topics there are.
        partitions: How many partitions all topics have together; at least one each.
        replication_factor: Replicas of a partition.
        placement: How the replicas came to their brokers.
        growth: Which part of the brokers came while topics were created, one after the other; for `history`.
        new_brokers: How many more brokers there are that have nothing yet.
        mean_bytes: The mean size of a partition. Sizes are exponential around their topic's mean, and that is so too.
        empty: How likely a topic holds nothing at all; the others are as large as they are without.
        seed: What everything is drawn from.
    """

    brokers: int = 40
    racks: int = 10
    topics: int = 3_000
    partitions: int = 16_667
    replication_factor: int = 3
    placement: Placement = Placement.HISTORY
    growth: float = 0.5
    new_brokers: int = 0
    mean_bytes: int = 2**30
    empty: float = 0.0
    seed: int = 1

    def __attrs_post_init__(self) -> None:
        """Refuse what is no cluster.

        Raises:
            PlanError: A number is out of range.
        """
        least = {"brokers": 1, "racks": 0, "topics": 1, "replication_factor": 1, "new_brokers": 0, "mean_bytes": 0}
        for name, floor in {**least, "seed": 0}.items():
            if getattr(self, name) < floor:
                raise PlanError(f"{name.replace('_', ' ')} must be {floor} or more, not {getattr(self, name)}")
        for name, most in _MOST.items():
            if getattr(self, name) > most:
                raise PlanError(f"{name.replace('_', ' ')} must be {most:,} or fewer, not {getattr(self, name)}")
        if self.partitions < self.topics:
            raise PlanError(f"partitions must be {self.topics} or more, one for each topic, not {self.partitions}")
        if not 0 <= self.growth < 1:
            raise PlanError(f"growth must be 0 or more and below 1, not {self.growth}")
        if not 0 <= self.empty <= 1:
            raise PlanError(f"empty must be from 0 to 1, not {self.empty}")
        if self.replication_factor > self.first_brokers:
            wanted = f"{self.replication_factor} replicas of a partition"
            raise PlanError(f"{self.first_brokers} brokers cannot hold {wanted}: give more brokers or a lower factor")

    @property
    def first_brokers(self) -> int:
        """Return how many brokers there were when the first topic was created."""
        if self.placement is not Placement.HISTORY:
            return self.brokers
        return max(self.brokers - int(self.brokers * self.growth), min(self.replication_factor, self.brokers))


SHAPES: Final[Mapping[str, Shape]] = {
    "uniform": Shape(placement=Placement.UNIFORM),
    "linear": Shape(placement=Placement.LINEAR),
    "exponential": Shape(placement=Placement.EXPONENTIAL),
    "history": Shape(),
    "mostly-empty": Shape(brokers=20, racks=4, topics=2_000, partitions=10_000, empty=0.9),
    "brokers-8": Shape(brokers=8, racks=0, topics=500, partitions=17_000),
    "brokers-199": Shape(brokers=199, topics=5_000, partitions=275_667),
    "brokers-215": Shape(brokers=215, topics=3_500, partitions=933_334),
    "brokers-270": Shape(brokers=270, topics=10_500, partitions=433_334),
    "brokers-300": Shape(brokers=300, topics=100_000, partitions=1_000_000),
}


def shape_named(name: str) -> Shape:
    """Return a shape by its name; `attrs.evolve` changes some of its numbers.

    Raises:
        PlanError: There is no such shape.
    """
    if name not in SHAPES:
        raise PlanError(f"there is no shape {name!r}: choose from {', '.join(SHAPES)}")
    return SHAPES[name]
