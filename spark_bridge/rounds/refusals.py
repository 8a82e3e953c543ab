"""Rejections of goals and clusters that cannot be planned, each in one line that says what to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_bridge.errors import PlanError
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind


def refuse_additions(brokers: Brokers, goal: Goal) -> None:
    """Reject brokers to add that cannot take replicas.

    Raises:
        PlanError: The state of a broker to add is not live.
    """
    added = brokers.indices(goal.brokers).tolist() if goal.kind is GoalKind.ADD_BROKERS else []
    for broker in (brokers.rows[index] for index in added):
        if broker.state is not BrokerState.LIVE:
            raise PlanError(
                f"broker {broker.id} is {broker.state} and cannot be given its share: leave it out, or give it the "
                "state live in the table of brokers (--brokers-table)"
            )


def refuse_unplaced(unplaced: NDArray[np.int64], brokers: Brokers, terms: Terms) -> None:
    """Reject a cluster in which replicas that must move find no broker.

    Raises:
        PlanError: There are such replicas.
    """
    factors = np.flatnonzero(unplaced[:, 0])
    if not len(factors):
        return
    factor, receivers = int(factors.max()), int(terms.receives.sum())
    replicas, size = unplaced.sum(axis=0).tolist()
    if receivers == 0:
        raise PlanError("no broker is left to receive replicas: name fewer brokers, or start others first")
    if factor > receivers:
        raise PlanError(
            f"{replicas} replicas find no broker: a replication factor of {factor} needs {factor} brokers, "
            f"and of {len(brokers)} only {receivers} may receive replicas: start {factor - receivers} more, "
            f"name fewer, or lower the factor to {receivers}"
        )
    raise PlanError(
        f"{replicas} replicas of {size} bytes together find no broker that has room on its disks for them: add disks "
        f"for {size} bytes where they may go, or start brokers with as much, or name fewer brokers"
    )
