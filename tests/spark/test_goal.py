"""Goals that contradict themselves are rejected with a line that says why."""

from __future__ import annotations

import pytest

from spark_bridge.errors import PlanError
from spark_bridge.model.goal import Goal, GoalKind


def test_a_broker_is_not_both_named_and_excluded() -> None:
    with pytest.raises(PlanError, match=r"^broker 3 is both named and excluded: it can be one of them$"):
        Goal(GoalKind.ADD_BROKERS, frozenset({2, 3}), exclude=frozenset({1, 3}))
