"""The signals by which operators hold rollouts up."""

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
        scene.cluster.world.signals.touch(self.path)


@frozen
class RemoveFile(Strike):
    """Remove a file from the hosts of all controllers, if it is there."""

    path: str

    def strike(self, scene: Scene) -> None:
        """Remove the file."""
        scene.cluster.trace.add("admin", ADMIN, f"removes the file {self.path}")
        scene.cluster.world.signals.remove(self.path)


@frozen
class BreakPage(Strike):
    """Let a page that controllers ask answer with an error; or not at all, if it is `silent`."""

    url: str
    silent: bool = False

    def strike(self, scene: Scene) -> None:
        """Break the page."""
        what = "is silent" if self.silent else "answers an error"
        scene.cluster.trace.add("admin", ADMIN, f"{self.url} {what}")
        scene.cluster.world.signals.break_page(self.url, is_silent=self.silent)


@frozen
class MendPage(Strike):
    """Let a page that controllers ask answer as it should."""

    url: str

    def strike(self, scene: Scene) -> None:
        """Mend the page."""
        scene.cluster.trace.add("admin", ADMIN, f"{self.url} answers again")
        scene.cluster.world.signals.mend_page(self.url)
