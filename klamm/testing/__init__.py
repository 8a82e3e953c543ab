"""A whole cluster inside your own tests: in one thread, on virtual time, replayable from a seed.

In a trio test, use the fixture `cluster` of `klamm.testing.plugin`, or `open_cluster` in any trio run on virtual time;
in an asyncio program, `open_asyncio_cluster`; in code without async, such as a state machine of hypothesis,
`SteppedCluster`.
"""

from __future__ import annotations

from broker.client import GaveUp
from klamm.testing import actions
from klamm.testing.asyncio_cluster import AsyncioCluster, open_asyncio_cluster
from klamm.testing.opening import ClusterFactory, open_cluster
from klamm.testing.random_faults import failing_seeds, random_faults
from klamm.testing.scenarios import run_scenario
from klamm.testing.stepped_cluster import SteppedCluster
from simulator.cluster import NotInTime, SimulatedCluster
from simulator.safety.invariants import Violation
from simulator.safety.leadership import IsrProposal

__all__ = [
    "AsyncioCluster",
    "ClusterFactory",
    "GaveUp",
    "IsrProposal",
    "NotInTime",
    "SimulatedCluster",
    "SteppedCluster",
    "Violation",
    "actions",
    "failing_seeds",
    "open_asyncio_cluster",
    "open_cluster",
    "random_faults",
    "run_scenario",
]
