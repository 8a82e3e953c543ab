"""Files on the hosts of controllers, by which operators tell them something."""

from __future__ import annotations

from attrs import frozen

from simulator.actions.scene import Scene, Strike
from simulator.administration import ADMIN


@frozen
class TouchFile(Strike):
    """Create a file on the hosts of all controllers."""

    path: str

    def strike(self, scene: Scene) -> None:
        """Create the file."""
        scene.cluster.trace.add("admin", ADMIN, f"creates the file {self.path}")
        scene.cluster.world.files[self.path] = None


@frozen
class RemoveFile(Strike):
    """Remove a file from the hosts of all controllers, if it is there."""

    path: str

    def strike(self, scene: Scene) -> None:
        """Remove the file."""
        scene.cluster.trace.add("admin", ADMIN, f"removes the file {self.path}")
        scene.cluster.world.files.pop(self.path, None)
