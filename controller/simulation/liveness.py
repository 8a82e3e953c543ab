"""What must hold within a stated time once faults have stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.simulation.cluster import SimulatedCluster


def faults(cluster: SimulatedCluster) -> list[str]:
    """Return what is not as it must be once nothing disturbs the cluster any more."""
    del cluster
    return []
