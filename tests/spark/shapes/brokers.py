"""Realistic brokers: ids with gaps, uneven racks, mixed capacities, tight disks, and some that are dead or drain."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from attrs import evolve

from spark_bridge.model.brokers import Broker, BrokerState

LIVE, EXCLUDED, DRAINING, DEAD = BrokerState

Rack = str | None

_RACKS = ("none", "none", "even", "even", "even", "one alone", "one alone", "half", "uneven", "one", "own")


def draw_brokers(rng: Random, count: int) -> list[Broker]:
    """Draw brokers in the order of their ids, without disks."""
    ids, racks, capacities, states = _ids(rng, count), _racks(rng, count), _capacities(rng, count), _states(rng, count)
    rows = zip(ids, racks, capacities, states, strict=True)
    return [Broker(id_, rack, capacity, state=state) for id_, rack, capacity, state in rows]


def in_a_few_racks(rng: Random, count: int) -> list[Broker]:
    """Draw healthy brokers in racks of very different sizes: one alone, the others in one or two."""
    names = ("a", "b")[: rng.randint(1, 2)]
    alone = rng.randrange(count)
    return [Broker(n, "alone" if n == alone else names[n % len(names)]) for n in range(count)]


def with_keepers(rng: Random, count: int) -> list[Broker]:
    """Draw brokers of which some in each rack only keep what they have, and one may drain; at least three receive."""
    names = [f"rack-{n}" for n in range(rng.randint(2, 3))]
    racks: list[Rack] = [rng.choice(names) for _ in range(count)]
    if rng.random() < 0.2:
        racks[rng.randrange(count)] = None
    states = [LIVE] * 3 + [rng.choice((LIVE, EXCLUDED, EXCLUDED)) for _ in range(count - 3)]
    if rng.random() < 0.3:
        states[-1] = rng.choice((DRAINING, DEAD))
    rng.shuffle(states)
    return [Broker(n, rack, state=state) for n, (rack, state) in enumerate(zip(racks, states, strict=True))]


def with_disks(rng: Random, brokers: Sequence[Broker], held: Sequence[int], total: int) -> list[Broker]:
    """Give brokers disks, in one cluster of three.

    Args:
        rng: Where from.
        brokers: The brokers.
        held: The bytes that each has before the plan.
        total: The bytes of all replicas that the plan is for.
    """
    if rng.random() < 2 / 3:
        return list(brokers)
    least, most = rng.choice(((1.5, 3.0), (1.05, 1.3), (0.8, 2.0)))
    mean = total / sum(b.capacity for b in brokers)
    sizes = [int(mean * b.capacity * rng.uniform(least, most)) for b in brokers]
    # A disk that is too small for what is on it is seldom, and then there is one.
    full = rng.randrange(len(brokers)) if rng.random() < 0.15 else -1
    disks = [size if n == full else max(size, has) for n, (size, has) in enumerate(zip(sizes, held, strict=True))]
    return [evolve(b, disk=disk if rng.random() < 0.9 else None) for b, disk in zip(brokers, disks, strict=True)]


def _ids(rng: Random, count: int) -> list[int]:
    match rng.choice(("from 0", "from 1", "gaps", "large")):
        case "from 0":
            return list(range(count))
        case "from 1":
            return list(range(1, count + 1))
        case "gaps":
            return sorted(rng.sample(range(5 * count), count))
        case _:
            return sorted(rng.sample(range(1_001, 2_000_000_000), count))


def _racks(rng: Random, count: int) -> list[Rack]:
    names = [f"rack-{n}" for n in range(rng.randint(2, 4))]
    match rng.choice(
        ("none", "none", "even", "even", "even", "one alone", "one alone", "half", "uneven", "one", "own")
    ):
        case "none":
            return [None] * count
        case "even":
            return [names[n % len(names)] for n in range(count)]
        case "one alone":
            return ["alone", *(names[n % (len(names) - 1)] for n in range(count - 1))]
        case "half":
            return [names[n % len(names)] if n % 2 else None for n in range(count)]
        case "uneven":
            return [rng.choices(names, [2**n for n in range(len(names))])[0] for _ in range(count)]
        case "one":
            return [names[0]] * count
        case _:
            return [f"rack-{n}" for n in range(count)]


def _capacities(rng: Random, count: int) -> list[float]:
    choices = rng.choice(((1.0,), (1.0,), (1.0, 2.0), (1.0, 4.0), (0.5, 1.0, 1.7)))
    return [rng.choice(choices) for _ in range(count)]


def _states(rng: Random, count: int) -> list[BrokerState]:
    """Draw who is ill: nobody in every other cluster; where there are few brokers, sometimes too many."""
    ill = rng.choice(((), (), (), (DEAD,), (DRAINING,), (EXCLUDED,), (DEAD, DRAINING), (EXCLUDED, DRAINING)))
    states = [LIVE] * count
    for state in ill:
        for n in rng.sample(range(count), rng.randint(1, max(1, count // 6))):
            states[n] = state
    return states
