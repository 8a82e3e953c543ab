"""Shares of the planner against linear programs that cut partitions up."""

from __future__ import annotations

import numpy as np
import pytest

from spark_bridge.engines.in_process import InProcess
from spark_bridge.kernel.terms import make_terms
from spark_bridge.planner import AtFirst
from tests.spark.kernel.exact import Problem
from tests.spark.kernel.fair import fair_shares
from tests.spark.kernel.instances import instance


@pytest.mark.parametrize("seed", [*range(40), 75, 87, 108, 148, 214])
def test_shares_are_as_near_to_capacity_as_racks_and_partitions_permit(seed: int) -> None:
    given = instance(seed)
    first = InProcess([given.block()]).ask(AtFirst(len(given.brokers), given.goal))
    terms = make_terms(given.brokers, given.goal, first["load"], first["by_factor"])
    fair = fair_shares(Problem.of(given.block(), given.brokers, given.goal), given.brokers)
    np.testing.assert_allclose(terms.share[terms.receives], fair[terms.receives], rtol=1e-6, atol=1e-5)
