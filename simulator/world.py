"""The world that the processes of a simulated cluster share."""

from __future__ import annotations

import trio
from attrs import field, frozen

from simulator.network.network import SimulatedNetwork
from simulator.safety.invariants import Safety
from simulator.settings import Settings
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
    files: dict[str, None] = field(factory=dict)
    """The files that operators have created on the hosts of controllers."""

    async def has_file(self, path: str) -> bool:
        """Return whether a file is on the hosts of controllers."""
        await trio.lowlevel.checkpoint()
        return path in self.files
