"""The interface of a spectator of random runs."""

from __future__ import annotations

from simulator.actions.scene import Action
from simulator.cluster import SimulatedCluster


class Spectator:
    """Ignores everything; what it does must not change the run."""

    def begins(self, cluster: SimulatedCluster) -> None:
        """Take note that the topics exist, and that the happenings begin."""

    def acts(self, action: Action) -> None:
        """Take note of an action that is carried out, or of a request that is made."""

    def refused(self, text: str) -> None:
        """Take note that a request was refused, or that an action could not be carried out."""

    def settled(self, cluster: SimulatedCluster) -> None:
        """Take note that all faults are repaired, and that the cluster is well."""
