"""The scene of an action, the nodes it is about, and the two kinds of actions: strikes and requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final

from attrs import Factory, define, field, frozen
from trio import Nursery

from simulator.cluster import SimulatedCluster
from simulator.process import ProcessState
from simulator.steps import Step

Node = int | str
"""A broker or a controller: its id, or a word that means one when the action happens."""

CONTROLLER: Final = "controller"
STANDBY: Final = "standby"
SAME: Final = "same"
WORDS: Final = (CONTROLLER, STANDBY, SAME)
LEADER_OF: Final = "leader of "
"""The name of a partition follows."""


class CannotBeDone(Exception):
    """An action is about something that does not exist now."""


def as_nodes(nodes: Node | Iterable[Node]) -> tuple[Node, ...]:
    """Return nodes; a single one needs no tuple."""
    return (nodes,) if isinstance(nodes, int | str) else tuple(nodes)


@define
class Scene:
    """The cluster, and the nodes that an action last chose by a word."""

    cluster: SimulatedCluster
    chosen: tuple[int, ...] = ()
    step: Step | None = None
    """The step within which this happens: its controller is then the one that the word means."""

    nursery: Nursery = Factory(lambda scene: scene.cluster.world.nursery, takes_self=True)
    """Runs what happens later."""

    def nodes(self, wanted: Iterable[Node]) -> tuple[int, ...]:
        """Return the ids of nodes. Raises CannotBeDone if a word means nobody now."""
        return tuple(id_ for node in wanted for id_ in ((node,) if isinstance(node, int) else self._meant(node)))

    def victims(self, action: Strike, wanted: Iterable[Node]) -> tuple[int, ...]:
        """Return the nodes to which an action is about to happen. Raises CannotBeDone."""
        del action
        return self.nodes(wanted)

    def _meant(self, word: str) -> tuple[int, ...]:
        cluster = self.cluster
        if word == SAME:
            found = self.chosen
        elif word == CONTROLLER:
            active = cluster.active_controller if self.step is None else self.step.controller_id
            found = () if active is None else (active,)
        elif word == STANDBY:
            running = [id_ for id_, process in cluster.controllers.items() if process.state is ProcessState.RUNNING]
            found = tuple(id_ for id_ in running if id_ != cluster.active_controller)[:1]
        else:
            state = cluster.partition(word.removeprefix(LEADER_OF))
            found = () if state is None or state.leader < 0 else (state.leader,)
        if not found:
            raise CannotBeDone(f"nobody is {word!r} now")
        self.chosen = found
        return found


class Strike(ABC):
    """An action that is done at once, within a controller's step if that is its time."""

    @abstractmethod
    def strike(self, scene: Scene) -> None:
        """Do it. Raises CannotBeDone."""

    def on(self, cluster: SimulatedCluster) -> None:
        """Do it to a cluster. Raises CannotBeDone."""
        self.strike(Scene(cluster))


class Request(ABC):
    """An action that is asked for, and answered."""

    @abstractmethod
    async def ask(self, scene: Scene) -> None:
        """Ask for it. Raises ApiError for a refusal; ClusterUnreachable, GaveUp or WireError if nobody answers."""

    async def on(self, cluster: SimulatedCluster) -> None:
        """Ask a cluster for it; see `ask`."""
        await self.ask(Scene(cluster))


Action = Strike | Request


@frozen
class NodeStrike(Strike):
    """A strike that happens to one node after the other."""

    nodes: tuple[Node, ...] = field(converter=as_nodes)

    def strike(self, scene: Scene) -> None:
        """Do it to each node."""
        for id_ in scene.victims(self, self.nodes):
            self.strike_node(scene.cluster, id_)

    @abstractmethod
    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Do it to a node."""
