"""A bench with twenty partitions, and its operator."""

from __future__ import annotations

import pytest

from tests.controller.conftest import Bench
from tests.controller.rollouts.operator import ORIGIN, Operator


@pytest.fixture
async def operator(bench: Bench) -> Operator:
    await bench.start(*[ORIGIN] * 20)
    return Operator(bench)
