"""The world that the processes of a simulated cluster share."""

from __future__ import annotations

import trio
from attrs import Factory, frozen

from simulator.network.network import SimulatedNetwork
from simulator.safety.invariants import Safety
from simulator.settings import Settings
from simulator.signals import Signals
from simulator.steps import Steps
from simulator.store.ensemble import SimulatedEnsemble
from simulator.trace import Trace


@frozen
class World:
    """Everything around the processes, and its observers."""

    seed: int
    settings: Settings
    trace: Trace
    steps: Steps
    safety: Safety
    network: SimulatedNetwork
    ensemble: SimulatedEnsemble
    nursery: trio.Nursery
    signals: Signals = Factory(lambda world: world.safety.signals, takes_self=True)
