"""What happens to processes and their disks."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from simulator.actions.scene import Node, NodeStrike, Request, Scene, Strike, as_nodes
from simulator.cluster import SimulatedCluster
from simulator.process import BrokerProcess, ProcessState


@frozen
class Crash(NodeStrike):
    """Kill nodes without a warning to anybody; with `noticed`, the store ends their sessions at once."""

    noticed: bool = False

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Crash a node."""
        cluster.crash(id_)
        if self.noticed:
            cluster.expire(id_)


@frozen
class Start(NodeStrike):
    """Start nodes that are dead; with `wipe` on an empty disk, with `elsewhere` on another port (brokers only)."""

    wipe: bool = False
    elsewhere: bool = False

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Start a node, unless it is alive."""
        process = cluster.process(id_)
        if process.state is ProcessState.DEAD:
            if self.elsewhere and isinstance(process, BrokerProcess):
                process.move()
            cluster.restart(id_, wipe=self.wipe)


@frozen
class Restart(Start):
    """Start nodes; those that are alive crash first."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Crash and start a node."""
        cluster.crash(id_)
        super().strike_node(cluster, id_)


@frozen
class Stop(Request):
    """Shut nodes down in good order: a controlled shutdown of a broker."""

    nodes: tuple[Node, ...] = field(converter=as_nodes)

    async def ask(self, scene: Scene) -> None:
        """Stop one node after the other."""
        for id_ in scene.nodes(self.nodes):
            await scene.cluster.stop(id_)


@frozen
class Pause(NodeStrike):
    """Freeze nodes, as SIGSTOP does."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Pause a node."""
        cluster.pause(id_)


@frozen
class Wake(NodeStrike):
    """Let nodes continue after a pause."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Wake a node."""
        cluster.wake(id_)


@frozen
class Skew(Strike):
    """Set by how many seconds the wall clocks of nodes are off."""

    seconds: Mapping[Node, float]

    def strike(self, scene: Scene) -> None:
        """Set the clocks."""
        for node, seconds in self.seconds.items():
            for id_ in scene.victims(self, (node,)):
                scene.cluster.skew(id_, round(seconds * 1000))


@frozen
class FailDisk(NodeStrike):
    """Make a log directory of brokers fail, or every one; what it holds stays."""

    directory: int | None = None

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Fail the directory of a broker."""
        cluster.brokers[id_].fail_log_dir(self.directory)


@frozen
class MendDisk(NodeStrike):
    """Make the disks of brokers work again; a broker uses a directory that failed only after its next start."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Mend the disk of a broker."""
        cluster.brokers[id_].mend_disk()
