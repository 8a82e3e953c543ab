"""Weights that differ from seed to seed, so that what is rare in most runs is frequent in some."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_FACTORS: Final = (0.0, 0.3, 1.0, 1.0, 4.0)


def skewed(rng: random.Random, draws: Sequence[tuple[float, T]]) -> list[tuple[float, T]]:
    """Return the draws with weights multiplied by random factors, at least one of them above zero."""
    factors = [rng.choice(_FACTORS) for _ in draws]
    factors[rng.randrange(len(draws))] = 1.0
    return [(weight * factor, draw) for (weight, draw), factor in zip(draws, factors, strict=True)]


def pick(rng: random.Random, draws: Sequence[tuple[float, T]]) -> T:
    """Pick one of the draws by their weights."""
    return rng.choices([draw for _, draw in draws], [weight for weight, _ in draws])[0]
