"""Faults of the network between nodes."""

from __future__ import annotations

from attrs import field, frozen

from simulator.actions.scene import Node, Scene, Strike, as_nodes
from simulator.network.network import Link
from simulator.settings import links_of


@frozen
class Isolate(Strike):
    """Hold back everything between nodes and others (all others if none are named); nothing is lost.

    With `one_way`, nodes still receive what others send.
    """

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    others: tuple[Node, ...] = field(default=(), converter=as_nodes)
    one_way: bool = False

    def strike(self, scene: Scene) -> None:
        """Block the links."""
        nodes = scene.nodes(self.nodes)
        scene.cluster.isolate(nodes, _others(scene, nodes, self.others), one_way=self.one_way)


@frozen
class Heal(Strike):
    """Undo every isolation; what was held back arrives."""

    def strike(self, scene: Scene) -> None:
        """Unblock the links."""
        scene.cluster.heal()


@frozen
class BreakConnections(Strike):
    """Break the connections between two nodes, which may connect again."""

    nodes: tuple[Node, ...] = field(converter=as_nodes)

    def strike(self, scene: Scene) -> None:
        """Break the connections."""
        scene.cluster.break_connections(*_pair(scene, self.nodes))


@frozen
class SilenceConnections(Strike):
    """Drop the connections between two nodes silently."""

    nodes: tuple[Node, ...] = field(converter=as_nodes)

    def strike(self, scene: Scene) -> None:
        """Silence the connections."""
        scene.cluster.silence_connections(*_pair(scene, self.nodes))


@frozen
class Slow(Strike):
    """Set the latency (seconds) and the speed of the links between nodes and others (all others if none are named).

    With `one_way`, only of the links from the nodes. `bytes_per_second` None stands for the usual links.
    """

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    latency: float = 0.0
    bytes_per_second: float | None = float("inf")
    others: tuple[Node, ...] = field(default=(), converter=as_nodes)
    one_way: bool = False

    def strike(self, scene: Scene) -> None:
        """Set the links."""
        network, nodes = scene.cluster.world.network, scene.nodes(self.nodes)
        others = _others(scene, nodes, self.others)
        for source, destination in links_of(nodes, others, one_way=self.one_way):
            if self.bytes_per_second is None:
                network.set_link(source, destination, network.default_link)
                continue
            text = f"slow: {self.bytes_per_second:g} bytes/s"
            scene.cluster.trace.add("fault", f"{source}>{destination}", text)
            network.set_link(source, destination, Link(self.latency, 0.0, self.bytes_per_second))


def _pair(scene: Scene, nodes: tuple[Node, ...]) -> tuple[int, int]:
    first, second = scene.nodes(nodes)
    return first, second


def _others(scene: Scene, nodes: tuple[int, ...], others: tuple[Node, ...]) -> tuple[int, ...]:
    return scene.nodes(others) or tuple(process.id for process in scene.cluster.processes() if process.id not in nodes)
