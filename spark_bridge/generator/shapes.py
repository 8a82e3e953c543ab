"""The shapes of clusters: their sizes, and how their replicas were placed.

The first three are the random clusters of Cruise Control's tests, with their parameters. The others have the sizes of
clusters that their operators have described in public.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from attrs import frozen

from spark_bridge.errors import PlanError


class Placement(StrEnum):
    """The distribution of replicas over brokers; replicas are always spread over racks."""

    UNIFORM = "uniform"  # all alike
    LINEAR = "linear"  # the n-th n times as likely as the first
    EXPONENTIAL = "exponential"  # the n-th of N with (n/N)^2 as the sum up to it: what Cruise Control calls so
    HISTORY = "history"  # all alike that existed when the topic was created, so older brokers are fuller


_MOST: Final = {"brokers": 100_000, "new_brokers": 100_000, "racks": 100_000, "partitions": 100_000_000}
"""Limits far above any real cluster; a larger number is a mistake, and would fill the machine's memory."""


@frozen
class ClusterShape:
    """The shape of a cluster to generate.

    Attributes:
        brokers: The number of brokers with replicas; their ids begin at 1.
        racks: The number of racks over which they are distributed in turn; 0 for brokers without racks.
        topics: The number of topics.
        partitions: The number of partitions of all topics; at least one each.
        replication_factor: The number of replicas of a partition.
        placement: The distribution of replicas over brokers.
        growth: The part of the brokers that were added one after another while topics were created; for `history`.
        new_brokers: The number of additional brokers that are still empty.
        mean_bytes: The mean size of a partition. Sizes are exponential around the mean of their topic, as are these.
        empty: The probability that a topic is empty; it does not change the size of the others.
        seed: The seed of all random numbers.
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
        """Reject invalid numbers.

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
        """Return the number of brokers that existed when the first topic was created."""
        if self.placement is not Placement.HISTORY:
            return self.brokers
        return max(self.brokers - int(self.brokers * self.growth), min(self.replication_factor, self.brokers))


SHAPES: Final[Mapping[str, ClusterShape]] = {
    "uniform": ClusterShape(placement=Placement.UNIFORM),
    "linear": ClusterShape(placement=Placement.LINEAR),
    "exponential": ClusterShape(placement=Placement.EXPONENTIAL),
    "history": ClusterShape(),
    "mostly-empty": ClusterShape(brokers=20, racks=4, topics=2_000, partitions=10_000, empty=0.9),
    "brokers-8": ClusterShape(brokers=8, racks=0, topics=500, partitions=17_000),
    "brokers-199": ClusterShape(brokers=199, topics=5_000, partitions=275_667),
    "brokers-215": ClusterShape(brokers=215, topics=3_500, partitions=933_334),
    "brokers-270": ClusterShape(brokers=270, topics=10_500, partitions=433_334),
    "brokers-300": ClusterShape(brokers=300, topics=100_000, partitions=1_000_000),
}


def shape_named(name: str) -> ClusterShape:
    """Return a shape by its name; `attrs.evolve` changes some of its numbers.

    Raises:
        PlanError: There is no such shape.
    """
    if name not in SHAPES:
        raise PlanError(f"there is no shape {name!r}: choose from {', '.join(SHAPES)}")
    return SHAPES[name]
