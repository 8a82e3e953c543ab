"""What the processes of a simulated cluster share."""

from __future__ import annotations

import trio
from attrs import frozen

from controller.simulation.ensemble import SimulatedEnsemble
from controller.simulation.invariants import Safety
from controller.simulation.network import SimulatedNetwork
from controller.simulation.settings import Settings
from controller.simulation.steps import Steps
from controller.simulation.trace import Trace


@frozen
class World:
    """Everything around the processes, and who watches it."""

    seed: int
    settings: Settings
    trace: Trace
    steps: Steps
    safety: Safety
    network: SimulatedNetwork
    ensemble: SimulatedEnsemble
    nursery: trio.Nursery
