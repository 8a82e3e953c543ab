"""Faults of the nodes' sessions with the store, and of the store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from attrs import evolve, field, frozen

from simulator.actions.scene import SAME, Node, NodeStrike, Scene, Strike, as_nodes
from simulator.cluster import SimulatedCluster
from simulator.settings import host_of
from simulator.store.host import Moment


@frozen
class Expire(NodeStrike):
    """End the sessions of nodes with the store at once."""

    strike_node = staticmethod(SimulatedCluster.expire)


@frozen
class Disconnect(NodeStrike):
    """Cut nodes off from the store; their sessions end if that lasts too long."""

    strike_node = staticmethod(SimulatedCluster.disconnect)


@frozen
class Reconnect(NodeStrike):
    """Let nodes reach the store again."""

    strike_node = staticmethod(SimulatedCluster.reconnect)


@frozen
class AtCommit(Strike):
    """Do something right before or after the next commit of nodes takes effect: to them, as `same`.

    With `path`, it is their next commit that changes this znode or one below it.
    """

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    moment: Moment
    strikes: tuple[Strike, ...]
    path: str = ""

    def strike(self, scene: Scene) -> None:
        """Wait for the commit."""
        ensemble = scene.cluster.world.ensemble
        for id_ in scene.victims(self, self.nodes):
            at_commit = partial(self._strike_all, evolve(scene, chosen=(id_,)))
            ensemble.on_next_multi(host_of(id_), at_commit, when=self.moment, path=self.path)

    def _strike_all(self, scene: Scene) -> None:
        for strike in self.strikes:
            strike.strike(scene)


def lose_answer(nodes: Node | tuple[Node, ...], *, applied: bool = True, path: str = "") -> AtCommit:
    """Break the connection of nodes at their next commit (to `path`), so that its answer is lost; they may reconnect.

    Unless it is `applied`, the commit itself is lost, too, which its node cannot know.
    """
    return AtCommit(nodes, "after" if applied else "before", (Disconnect(SAME), Reconnect(SAME)), path)


@frozen
class SlowStore(Strike):
    """Set the latency of messages between nodes and the store, in seconds; None restores the usual one."""

    seconds: Mapping[Node, float | None]

    def strike(self, scene: Scene) -> None:
        """Set the latencies."""
        ensemble = scene.cluster.world.ensemble
        for node, seconds in self.seconds.items():
            for id_ in scene.victims(self, (node,)):
                if seconds is not None:
                    scene.cluster.trace.add("fault", host_of(id_), f"the store answers after {seconds:g} s")
                ensemble.set_latency(host_of(id_), ensemble.default_latency if seconds is None else seconds)


@frozen
class Lag(Strike):
    """Set by how many seconds followers of the ensemble (servers 2, 3, ...) lag behind each commit."""

    seconds: Mapping[int, float]

    def strike(self, scene: Scene) -> None:
        """Set the lags."""
        for server, seconds in self.seconds.items():
            if seconds:
                scene.cluster.trace.add("fault", f"zookeeper-{server}", f"lags {seconds:g} s behind")
            scene.cluster.world.ensemble.set_lag(server, seconds)


@frozen
class SlowCommits(Strike):
    """Let each commit of the store take so many seconds longer, while it reads as fast as before; 0 ends this."""

    seconds: float = field(converter=float)

    def strike(self, scene: Scene) -> None:
        """Set the time."""
        scene.cluster.trace.add("fault", "zookeeper", f"takes {self.seconds:g} s longer to commit")
        scene.cluster.world.ensemble.set_commit_seconds(self.seconds)


@frozen
class LoseQuorum(Strike):
    """Let the store lose its leader: all connections to it break, none can be made, and no session ends meanwhile."""

    def strike(self, scene: Scene) -> None:
        """Lose the quorum."""
        scene.count("losses of the store's quorum")
        scene.cluster.trace.add("fault", "zookeeper", "loses its quorum")
        scene.cluster.world.ensemble.lose_quorum()


@frozen
class RegainQuorum(Strike):
    """Let the store have a leader again; each session has its whole timeout to return."""

    def strike(self, scene: Scene) -> None:
        """Regain the quorum."""
        scene.cluster.trace.add("fault", "zookeeper", "regains its quorum")
        scene.cluster.world.ensemble.regain_quorum()


@frozen
class Depose(Strike):
    """Delete `/controller`, as operators do to have another controller elected."""

    def strike(self, scene: Scene) -> None:
        """Delete the znode if it exists."""
        scene.cluster.depose()
