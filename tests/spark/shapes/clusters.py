"""Random clusters of many shapes with a goal each, from a seed: what `tests.spark.kernel.instances` does not draw.

Many empty topics, heavy tails, one giant partition, uneven racks, brokers that are dead or drain, tight disks, and
replication factors that hardly find brokers enough. Most are small; one of ten has some thousand partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from attrs import frozen

from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import GoalKind
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.brokers import draw_brokers, in_a_few_racks, with_disks, with_keepers
from tests.spark.shapes.goals import Held, draw_goal, kind_of
from tests.spark.shapes.sizes import SCALES, SIZES, rates

Factors = tuple[int, ...]
"""Replication factors that topics of a cluster have."""

_FACTORS: Final[tuple[Factors, ...]] = ((1,), (2,), (3,), (3,), (1, 2, 3), (1, 2, 3, 4, 5), (2, 5), (6,))

_CROWDED: Final = 20
"""Each so manieth cluster is crowded."""

KEEPERS_FROM: Final = 1_000_000
"""From this seed on, each cluster has brokers that only keep what they have, in racks with others that receive."""

_WIDE: Final[tuple[Factors, ...]] = ((3,), (4,), (5,), (3, 4, 5), (2, 6))

_NAMES: Final = ("orders", "clicks.v2", "a_b-c", "Größe", "日本", "данные", "x" * 249)


def shaped(seed: int, *, small: bool = False) -> Instance:
    """Draw a cluster and a goal.

    Args:
        seed: What it is drawn from; kinds of goals take turns by it.
        small: Whether no cluster is large: for solvers that take long.
    """
    rng = Random(seed)
    if seed >= KEEPERS_FROM:
        many = rng.randint(6, 12)
        return _of(rng, seed, rng.randint(1, 40), with_keepers(rng, many), _WIDE)
    if seed % _CROWDED == _CROWDED - 1:
        return drawn(rng, seed, rng.randint(1, 20), rng.randint(5, 9), crowded=True)
    large = rng.random() < 0.1 and not small
    count = rng.randint(200, 3_000) if large else rng.randint(1, 60)
    brokers = rng.randint(8, 60) if large else rng.randint(3, 12)
    return drawn(rng, seed, count, brokers)


def drawn(rng: Random, seed: int, count: int, many: int, *, crowded: bool = False) -> Instance:
    """Draw a cluster of `count` partitions on `many` brokers, and a goal.

    Where it is crowded, most partitions are on all brokers but one or two, and racks are of very different sizes.
    """
    brokers = in_a_few_racks(rng, many) if crowded else draw_brokers(rng, many)
    return _of(rng, seed, count, brokers, None if crowded else _FACTORS)


def _of(rng: Random, seed: int, count: int, brokers: Sequence[Broker], factors: Sequence[Factors] | None) -> Instance:
    """Draw partitions on brokers, and a goal; without factors, most partitions are on all brokers but one or two."""
    kind = kind_of(seed)
    added = rng.randint(1, max(1, len(brokers) // 4)) if kind is GoalKind.ADD_BROKERS or rng.random() < 0.1 else 0
    old = brokers[: len(brokers) - added]
    partitions = _partitions(rng, count, old, factors or [(len(old) - 1, len(old) - 2, 2)])
    sizes = _sizes(rng, count)
    held = [0] * len(brokers)
    for size, replicas in zip(sizes, partitions.replicas, strict=True):
        for broker in replicas:
            held[broker] += size
    brokers = with_disks(rng, brokers, held, sum(held))
    topics = sorted({topic for topic, _ in partitions.names})
    widest = max(map(len, partitions.replicas))
    goal = draw_goal(rng, kind, Held(brokers, added, held, topics, widest))
    return Instance(
        seed,
        str(kind),
        partitions.names,
        partitions.replicas,
        tuple(sizes),
        tuple(rates(rng, sizes)),
        Brokers.of(brokers),
        goal,
    )


@frozen
class _Partitions:
    names: tuple[tuple[str, int], ...]
    replicas: tuple[tuple[int, ...], ...]


def _sizes(rng: Random, count: int) -> list[int]:
    scale = rng.choice(SCALES)
    return [scale * size for size in rng.choice(SIZES)(rng, count)]


def _partitions(rng: Random, count: int, old: Sequence[Broker], factors: Sequence[Factors]) -> _Partitions:
    """Draw topics and where their replicas are."""
    names = _names(rng, count)
    mixed, pull = rng.choice(factors), _pull(rng, old)
    careful = rng.choice((1.0, 0.9, 0.5, 0.0))
    factor_of = {topic: min(rng.choice(mixed), len(old)) for topic in sorted({topic for topic, _ in names})}
    replicas = [_replicas(rng, old, pull, factor_of[topic], careful=rng.random() < careful) for topic, _ in names]
    return _Partitions(tuple(names), tuple(replicas))


def _names(rng: Random, count: int) -> list[tuple[str, int]]:
    """Draw topics: of one partition each, of many, or of very different widths."""
    widest = rng.choice((1, 6, max(1, count)))
    names: list[tuple[str, int]] = []
    while len(names) < count:
        topic = f"{rng.choice(_NAMES)[:243]}{len(names)}"
        names += [(topic, n) for n in range(min(rng.randint(1, widest), count - len(names)))]
    return names


def _pull(rng: Random, old: Sequence[Broker]) -> list[float]:
    """Draw how strongly each broker drew replicas so far."""
    match rng.choice(("alike", "skewed", "skewed", "history", "hot")):
        case "alike":
            parts = [rng.uniform(0.9, 1) for _ in old]
        case "skewed":
            parts = [rng.uniform(0.1, 1) for _ in old]
        case "history":
            parts = [1 - 0.9 * n / len(old) for n in range(len(old))]
        case _:
            hot = rng.randrange(len(old))
            parts = [10.0 if n == hot else 1.0 for n in range(len(old))]
    return [part * b.capacity for part, b in zip(parts, old, strict=True)]


def _replicas(
    rng: Random, old: Sequence[Broker], pull: Sequence[float], factor: int, *, careful: bool
) -> tuple[int, ...]:
    """Draw the list of a partition, with regard for racks where that is careful."""
    chosen: list[int] = []
    while len(chosen) < factor:
        used = {old[n].rack for n in chosen if old[n].rack is not None} if careful else set()
        left = [n for n in range(len(old)) if n not in chosen]
        fresh = [n for n in left if old[n].rack not in used] or left
        chosen.append(rng.choices(fresh, [pull[n] for n in fresh])[0])
    return tuple(chosen)
