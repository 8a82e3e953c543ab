"""Faults of the network between nodes."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import ClassVar

from attrs import field, frozen

from simulator.actions.scene import Node, NodeStrike, Scene, Strike, as_nodes
from simulator.cluster import SimulatedCluster
from simulator.frames import is_about_leadership
from simulator.network.network import Door, Link
from simulator.settings import host_of, links_of


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
    """Drop the connections between two nodes silently; with `one_way`, only what the first sends is lost."""

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    one_way: bool = False

    def strike(self, scene: Scene) -> None:
        """Silence the connections."""
        first, second = _pair(scene, self.nodes)
        if self.one_way:
            scene.count("connections silent in one direction")
        scene.cluster.silence_connections(first, second, one_way=self.one_way)


@frozen
class Slow(Strike):
    """Set the latency (seconds) and the speed of the links between nodes and others (all others if none are named).

    With `one_way`, only of the links from the nodes. `bytes_per_second` None stands for the usual links. With `jitter`,
    each message takes up to so many seconds longer.
    """

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    latency: float = 0.0
    bytes_per_second: float | None = float("inf")
    others: tuple[Node, ...] = field(default=(), converter=as_nodes)
    one_way: bool = False
    jitter: float = 0.0

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
            network.set_link(source, destination, Link(self.latency, self.jitter, self.bytes_per_second))


@frozen
class _NextRequest(Strike):
    """A strike at the next request about leadership on each link from nodes to receivers (all others if none).

    With `api`, at the next request of this api, such as AlterPartition.
    """

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    receivers: tuple[Node, ...] = field(default=(), converter=as_nodes, kw_only=True)
    api: str | None = field(default=None, kw_only=True)

    def strike(self, scene: Scene) -> None:
        """Wait for the request on each link."""
        nodes = scene.nodes(self.nodes)
        for source, destination in links_of(nodes, _others(scene, nodes, self.receivers), one_way=True):
            self.await_request(scene, source, destination)

    @abstractmethod
    def await_request(self, scene: Scene, source: str, destination: str) -> None:
        """Wait for the request on a link between two hosts."""

    def concerns(self, scene: Scene, source: str, destination: str, what: str, chunk: bytes) -> bool:
        """Return whether a chunk is the request; trace and count it if so."""
        if not is_about_leadership(chunk, self.api):
            return False
        scene.cluster.trace.add("fault", f"{source}>{destination}", f"a request is {what}")
        scene.count(f"requests about leadership: {what}")
        return True


@frozen
class DelayRequest(_NextRequest):
    """Delay the next request about leadership that nodes send to receivers (all others if none are named).

    With `breaks`, its connection breaks for the sender alone, which sends it again: then it arrives twice, and late.
    """

    seconds: float = 1.0
    breaks: bool = False

    def await_request(self, scene: Scene, source: str, destination: str) -> None:
        """Wait for the request on a link between two hosts."""
        what = "repeated" if self.breaks else "delayed"
        concerns = partial(self.concerns, scene, source, destination, what)
        scene.cluster.world.network.delay_next(source, destination, concerns, self.seconds, breaks=self.breaks)


@frozen
class TearRequest(_NextRequest):
    """Break a connection in the middle of the next request about leadership from nodes to receivers (or to all)."""

    def await_request(self, scene: Scene, source: str, destination: str) -> None:
        """Wait for the request on a link between two hosts."""
        concerns = partial(self.concerns, scene, source, destination, "torn")
        scene.cluster.world.network.tear_next(source, destination, concerns)


@frozen
class _SetDoor(NodeStrike):
    door: ClassVar[Door]

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Set how a node treats new connections."""
        cluster.trace.add("fault", host_of(id_), f"{self.door.value} new connections")
        cluster.world.network.set_door(host_of(id_), self.door)


@frozen
class RefuseConnections(_SetDoor):
    """Refuse new connections to nodes; those that exist stay."""

    door = Door.REFUSING


@frozen
class IgnoreConnections(_SetDoor):
    """Accept new connections to nodes, but answer nothing on them; those that exist stay."""

    door = Door.SILENT


@frozen
class ServeConnections(_SetDoor):
    """Serve new connections to nodes again, and those that were ignored."""

    door = Door.OPEN


def _pair(scene: Scene, nodes: tuple[Node, ...]) -> tuple[int, int]:
    first, second = scene.nodes(nodes)
    return first, second


def _others(scene: Scene, nodes: tuple[int, ...], others: tuple[Node, ...]) -> tuple[int, ...]:
    return scene.nodes(others) or tuple(process.id for process in scene.cluster.processes() if process.id not in nodes)
