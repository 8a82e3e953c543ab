"""The scene of an action, its nodes, and the two kinds of actions: strikes and requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final

from attrs import Factory, define, field, frozen
from trio import Nursery

from simulator.broker_process import BrokerProcess
from simulator.cluster import SimulatedCluster
from simulator.process import ControllerProcess, ProcessState
from simulator.steps import ControllerStep

Node = int | str
"""A broker or a controller: its id, or a word that stands for one when the action happens."""

CONTROLLER: Final = "controller"
STANDBY: Final = "standby"
SAME: Final = "same"
WORDS: Final = (CONTROLLER, STANDBY, SAME)
LEADER_OF: Final = "leader of "
"""A prefix, followed by the name of a partition."""


class CannotBeDone(Exception):
    """An action refers to something that does not currently exist."""


def as_nodes(nodes: Node | Iterable[Node]) -> tuple[Node, ...]:
    """Return nodes as a tuple; a single node needs none."""
    return (nodes,) if isinstance(nodes, int | str) else tuple(nodes)


def broker_of(cluster: SimulatedCluster, id_: int) -> BrokerProcess:
    """Return a broker. Raises CannotBeDone if the node is a controller."""
    if id_ not in cluster.brokers:
        raise CannotBeDone(f"node {id_} is not a broker")
    return cluster.brokers[id_]


def controller_of(cluster: SimulatedCluster, id_: int) -> ControllerProcess:
    """Return a controller. Raises CannotBeDone if the node is a broker."""
    if id_ not in cluster.controllers:
        raise CannotBeDone(f"node {id_} is not a controller")
    return cluster.controllers[id_]


@define
class Scene:
    """The cluster, and the nodes that the last action chose."""

    cluster: SimulatedCluster
    chosen: tuple[int, ...] = ()
    struck: tuple[int, ...] = ()
    """The nodes that the last strike on nodes struck, by whatever name."""

    step: ControllerStep | None = None
    """The step within which the action happens: its controller is then the one for which the word stands."""

    nursery: Nursery = Factory(lambda scene: scene.cluster.world.nursery, takes_self=True)
    """Runs delayed actions."""

    def nodes(self, wanted: Iterable[Node]) -> tuple[int, ...]:
        """Return the ids of nodes. Raises CannotBeDone if a word currently stands for no node."""
        return tuple(id_ for node in wanted for id_ in ((node,) if isinstance(node, int) else self._meant(node)))

    def victims(self, action: Strike, wanted: Iterable[Node]) -> tuple[int, ...]:
        """Return the nodes that an action is about to strike. Raises CannotBeDone."""
        del action
        self.struck = self.nodes(wanted)
        return self.struck

    def count(self, what: str) -> None:
        """Note that something happened which was only waited for; random runs count it."""

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
            raise CannotBeDone(f"no node is {word!r} now")
        self.chosen = found
        return found


class Strike(ABC):
    """An action that takes effect at once, within a controller's step if it is triggered by one."""

    @abstractmethod
    def strike(self, scene: Scene) -> None:
        """Carry out the action. Raises CannotBeDone."""

    def on(self, cluster: SimulatedCluster) -> None:
        """Carry out the action on a cluster. Raises CannotBeDone."""
        self.strike(Scene(cluster))


class Request(ABC):
    """An action that is requested and answered."""

    @abstractmethod
    async def ask(self, scene: Scene) -> None:
        """Make the request. Raises ApiError if it is refused; ClusterUnreachable, GaveUp or WireError if unanswered."""

    async def on(self, cluster: SimulatedCluster) -> None:
        """Make the request to a cluster; see `ask`."""
        await self.ask(Scene(cluster))


Action = Strike | Request


@frozen
class NodeStrike(Strike):
    """A strike that is carried out on each of its nodes in turn."""

    nodes: tuple[Node, ...] = field(converter=as_nodes)

    def strike(self, scene: Scene) -> None:
        """Strike each node."""
        for id_ in scene.victims(self, self.nodes):
            self.strike_node(scene.cluster, id_)

    @abstractmethod
    def strike_node(self, cluster: SimulatedCluster, id_: int, /) -> None:
        """Strike a node."""
