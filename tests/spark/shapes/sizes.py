"""Distributions of the sizes and rates of partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

Sizes = Callable[[Random, int], list[int]]
"""Draws the sizes of so many partitions; the unit is free."""

SCALES: Final = (1, 1, 1_000, 1_000_000_000)
"""Bytes in a unit: from partitions of a few bytes up to terabytes."""


def zipf(rng: Random, count: int) -> list[int]:
    """Draw a few giants and a long tail, in no order."""
    power, first = rng.uniform(0.7, 1.6), rng.choice((1_000, 100_000))
    sizes = [int(first / rank**power) for rank in range(1, count + 1)]
    rng.shuffle(sizes)
    return sizes


def lognormal(rng: Random, count: int) -> list[int]:
    """Draw sizes over some orders of magnitude."""
    sigma = rng.choice((1.0, 2.0, 3.0))
    return [int(min(1e6, 100 * rng.lognormvariate(0, sigma))) for _ in range(count)]


def exponential(rng: Random, count: int) -> list[int]:
    """Draw sizes as the generator of clusters does."""
    return [int(rng.expovariate(1 / 500)) for _ in range(count)]


def bimodal(rng: Random, count: int) -> list[int]:
    """Draw small and large sizes, nothing between."""
    large = rng.choice((0.05, 0.3, 0.5))
    return [rng.randint(5_000, 10_000) if rng.random() < large else rng.randint(1, 10) for _ in range(count)]


def uniform(rng: Random, count: int) -> list[int]:
    """Draw sizes of about one order."""
    return [rng.randint(1, 1_000) for _ in range(count)]


def equal(rng: Random, count: int) -> list[int]:
    """Give all the same size."""
    return [rng.choice((1, 100))] * count


def one_giant(rng: Random, count: int) -> list[int]:
    """Draw one partition that outweighs all others together."""
    sizes = uniform(rng, count)
    sizes[rng.randrange(count)] = sum(sizes) * rng.choice((1, 5, 50))
    return sizes


def mostly_empty(rng: Random, count: int) -> list[int]:
    """Leave most without a byte."""
    some = rng.choice((0.02, 0.1, 0.3))
    return [rng.randint(1, 10_000) if rng.random() < some else 0 for _ in range(count)]


def empty(rng: Random, count: int) -> list[int]:
    """Leave all without a byte, or of unknown size, which counts the same."""
    del rng
    return [0] * count


SIZES: Final[tuple[Sizes, ...]] = (
    zipf,
    zipf,
    lognormal,
    lognormal,
    exponential,
    bimodal,
    uniform,
    equal,
    one_giant,
    mostly_empty,
    mostly_empty,
    empty,
)


def rates(rng: Random, sizes: Sequence[int]) -> list[int]:
    """Draw bytes in per second: along with the sizes, independent of them, of some partitions only, or of none."""
    match rng.choice(("none", "along", "along", "equal", "independent", "independent", "some")):
        case "none":
            return [0] * len(sizes)
        case "along":
            return [int(size * rng.uniform(0.05, 0.15)) for size in sizes]
        case "equal":
            return list(sizes)
        case "some":
            return [rng.randint(1, 1_000) if rng.random() < 0.2 else 0 for _ in sizes]
        case _:
            return [int(min(1e6, rng.lognormvariate(3, 1.5))) for _ in sizes]
