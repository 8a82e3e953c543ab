"""Pauses before another attempt."""

from __future__ import annotations

import random

from hypothesis import given, strategies as st

from actors import Backoff


def test_it_doubles_up_to_the_maximum_and_begins_again_after_a_success() -> None:
    backoff = Backoff(0.1, 1.0, jitter=lambda: 1.0)
    assert [backoff.next() for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    backoff.reset()
    assert backoff.next() == 0.1


@given(st.integers(), st.floats(0.001, 10), st.floats(0.001, 100), st.integers(1, 5_000))
def test_chance_has_the_upper_half(seed: int, base: float, maximum: float, failures: int) -> None:
    backoff = Backoff(base, maximum, jitter=random.Random(seed).random)
    delays = [backoff.next() for _ in range(failures)]
    assert min(base, maximum) / 2 <= delays[0] <= min(base, maximum)
    assert all(0 < delay <= maximum for delay in delays)
    assert failures < 20 or delays[-1] >= maximum / 2


def test_the_same_seed_makes_the_same_delays_and_another_one_others() -> None:
    def delays(seed: int) -> list[float]:
        backoff = Backoff(jitter=random.Random(seed).random)
        return [backoff.next() for _ in range(10)]

    assert delays(1) == delays(1) != delays(2)
