"""Small random clusters with something to plan, each from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from attrs import evolve, frozen

from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind

KINDS: Final = ("drain", "add", "replace", "rebalance")
"""The purposes of instances. To replace means to add an empty broker while another drains, in one plan."""

Size = Callable[[Random], int]

SIZES: Final[tuple[Size, ...]] = (
    lambda rng: rng.randint(1, 1_000),
    lambda rng: 1 + int(rng.expovariate(1 / 500)),
    lambda rng: rng.choice((100, 200, 400)),
)


@frozen
class Instance:
    """A cluster and a goal.

    Attributes:
        seed: What it was drawn from.
        kind: One of `KINDS`.
        names: Of the partitions: topic and number.
        replicas: Their lists of broker indices.
        size: Their bytes.
        bytes_in: Their bytes in per second.
        brokers: The brokers.
        goal: The goal.
    """

    seed: int
    kind: str
    names: tuple[tuple[str, int], ...]
    replicas: tuple[tuple[int, ...], ...]
    size: tuple[int, ...]
    bytes_in: tuple[int, ...]
    brokers: Brokers
    goal: Goal

    def block(self, order: Sequence[int] | None = None) -> Block:
        """Return all partitions as one block, their rows put in in this order."""
        rows = range(len(self.names)) if order is None else order
        return Block.of(
            [self.names[i] for i in rows],
            [self.replicas[i] for i in rows],
            [self.size[i] for i in rows],
            [self.bytes_in[i] for i in rows],
            [2 * self.bytes_in[i] for i in rows],
        )


def instance(seed: int) -> Instance:
    """Draw an instance: kinds take turns by seed."""
    rng, kind = Random(seed), KINDS[seed % len(KINDS)]
    racks, brokers = rng.randint(0, 4), _brokers(rng)
    brokers = [evolve(b, rack=f"rack-{b.id % racks}" if racks else None) for b in brokers]
    empty = rng.randint(1, 2) if kind == "add" else 1 if kind == "replace" else 0
    old = brokers[: len(brokers) - empty]
    factors = rng.choice(((1,), (2,), (3,), (1, 2, 3)))
    count, draw = rng.randint(6, 40), rng.choice(SIZES)
    size = tuple(draw(rng) for _ in range(count))
    names = tuple((f"topic-{n % 3}", n) for n in range(count))
    pull = _pull(rng, old, skewed=kind == "rebalance")
    leaving = [rng.choice(old)] if kind in {"drain", "replace"} else []
    most = len(brokers) - len(leaving)
    replicas = tuple(_replicas(rng, old, pull, min(factors[n % 3 % len(factors)], most)) for n in range(count))
    with_disks = _disks(rng, brokers, sum(s * len(r) for s, r in zip(size, replicas, strict=True)))
    states = [evolve(b, state=BrokerState.DRAINING) if b in leaving else b for b in brokers]
    rows = [evolve(b, disk=disk) for b, disk in zip(states, with_disks, strict=True)]
    return Instance(
        seed,
        kind,
        names,
        replicas,
        size,
        _bytes_in(rng, size),
        Brokers.of(rows),
        _goal(rng, kind, brokers, old, leaving),
    )


def _brokers(rng: Random) -> list[Broker]:
    capacities = rng.choice(((1.0,), (1.0,), (1.0, 2.0)))
    return [Broker(10 + n, capacity=rng.choice(capacities)) for n in range(rng.randint(4, 10))]


def _pull(rng: Random, old: Sequence[Broker], *, skewed: bool) -> dict[int, float]:
    """Return how strongly each broker drew replicas so far."""
    return {b.id: b.capacity * (rng.uniform(0.2, 1) if skewed else rng.uniform(0.8, 1)) for b in old}


def _replicas(rng: Random, old: Sequence[Broker], pull: dict[int, float], factor: int) -> tuple[int, ...]:
    """Draw the list of a partition; one in ten has no regard for racks."""
    chosen: list[Broker] = []
    left, careful = list(old), rng.random() < 0.9
    while left and len(chosen) < factor:
        used = {b.rack for b in chosen if b.rack is not None}
        fresh = [b for b in left if b.rack not in used] if careful else left
        picked = rng.choices(fresh or left, [pull[b.id] for b in fresh or left])[0]
        chosen.append(picked)
        left.remove(picked)
    return tuple(b.id - 10 for b in chosen)


def _disks(rng: Random, brokers: Sequence[Broker], total: int) -> list[int | None]:
    """Draw disks for one cluster in three: they hold a good part more than a broker's share."""
    mean = total / sum(b.capacity for b in brokers)
    limited = rng.random() < 1 / 3
    return [int(mean * b.capacity * rng.uniform(1.5, 2.5)) if limited and rng.random() < 0.7 else None for b in brokers]


def _bytes_in(rng: Random, size: Sequence[int]) -> tuple[int, ...]:
    """Draw bytes in: along with the sizes in every other cluster, in a noisy way."""
    if rng.random() < 0.5:
        return tuple(1 + int(s * rng.uniform(0.05, 0.15)) for s in size)
    return tuple(rng.randint(1, 100) for _ in size)


def _goal(rng: Random, kind: str, brokers: Sequence[Broker], old: Sequence[Broker], leaving: Sequence[Broker]) -> Goal:
    tolerance = rng.choice((0.05, 0.05, 0.1))
    if kind == "rebalance":
        return Goal(GoalKind.REBALANCE, tolerance=tolerance, force=True)
    if kind == "drain":
        return Goal(GoalKind.REMOVE_BROKERS, frozenset(b.id for b in leaving), tolerance=tolerance, force=True)
    added = frozenset(b.id for b in brokers) - {b.id for b in old}
    return Goal(GoalKind.ADD_BROKERS, added, tolerance=tolerance, force=True)
