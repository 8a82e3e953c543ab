"""The number of examples of properties that are costly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis

SOAK = 1_000
"""The number of examples in the profile of `make soak`."""


def examples(few: int, many: int = SOAK) -> Callable[[Any], Any]:
    """Return hypothesis's settings for so few examples, and for many in the soak."""
    return hypothesis.settings(max_examples=many if hypothesis.settings().max_examples >= SOAK else few)
