"""What can happen in a scenario: each verb, what it is done to, and how it is done to a simulated cluster.

Strikes are done at once, in the middle of a step if that is their time. Requests go through the cluster's own admin
api, or take their time otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import define, frozen

from simulator.cluster import SimulatedCluster, partition_named
from simulator.network.network import Link
from simulator.process import ProcessState
from simulator.scenario.model import Node, TopicPlan
from simulator.settings import host_of
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
)
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import ANY_VERSION, Create, Set

LEADER_OF: Final = "leader of "


class CannotBeDone(Exception):
    """An event speaks of something that there is not."""


@define
class Scene:
    """The cluster, and the nodes that an event chose last by a word."""

    cluster: SimulatedCluster
    chosen: tuple[int, ...] = ()

    def nodes(self, wanted: Iterable[Node]) -> tuple[int, ...]:
        """Return the ids of nodes. Raises CannotBeDone if a word means nobody now."""
        return tuple(id_ for node in wanted for id_ in ((node,) if isinstance(node, int) else self._meant(node)))

    def _meant(self, word: str) -> tuple[int, ...]:
        cluster = self.cluster
        if word == "same":
            found = self.chosen
        elif word == "controller":
            found = () if cluster.active_controller is None else (cluster.active_controller,)
        elif word == "standby":
            running = [id_ for id_, process in cluster.controllers.items() if process.state is ProcessState.RUNNING]
            found = tuple(id_ for id_ in running if id_ != cluster.active_controller)[:1]
        else:
            state = cluster.partition(word.removeprefix(LEADER_OF))
            found = () if state is None or state.leader < 0 else (state.leader,)
        if not found:
            raise CannotBeDone(f"nobody is {word!r} now")
        self.chosen = found
        return found


@frozen
class Verb:
    """How something is done: at once, or as a request that is answered."""

    text: str
    strike: Callable[[Scene, Any], object] | None = None
    ask: Callable[[Scene, Any], Awaitable[object]] | None = None


@frozen
class Isolation:
    """Which nodes cannot send to which others, nor hear of them unless it is one way."""

    nodes: tuple[Node, ...]
    others: tuple[Node, ...] = ()
    one_way: bool = False


@frozen
class Slowness:
    """How slow the links from and to some nodes are."""

    nodes: tuple[Node, ...]
    latency: float = 0.0
    bytes_per_second: float = float("inf")


# --- strikes ----------------------------------------------------------------------------------------------------


def _each(strike: Callable[[SimulatedCluster, int], object]) -> Callable[[Scene, Iterable[Node]], None]:
    def strike_all(scene: Scene, nodes: Iterable[Node]) -> None:
        for id_ in scene.nodes(nodes):
            strike(scene.cluster, id_)

    return strike_all


def _isolate(scene: Scene, isolation: Isolation) -> None:
    nodes = scene.nodes(isolation.nodes)
    others = scene.nodes(isolation.others) or tuple(p.id for p in scene.cluster.processes() if p.id not in nodes)
    scene.cluster.isolate(nodes, others, one_way=isolation.one_way)


def _slow(scene: Scene, slowness: Slowness) -> None:
    network = scene.cluster.world.network
    link = Link(slowness.latency, 0.0, slowness.bytes_per_second)
    for id_ in scene.nodes(slowness.nodes):
        scene.cluster.trace.add("fault", host_of(id_), f"slow links: {link}")
        for other in [process for process in scene.cluster.processes() if process.id != id_]:
            network.set_link(host_of(id_), other.host, link)
            network.set_link(other.host, host_of(id_), link)


def _break(scene: Scene, nodes: Iterable[Node]) -> None:
    first, second = scene.nodes(nodes)
    scene.cluster.break_connections(first, second)


def _silence(scene: Scene, nodes: Iterable[Node]) -> None:
    first, second = scene.nodes(nodes)
    scene.cluster.silence_connections(first, second)


def _skew(scene: Scene, clocks: Mapping[int, float]) -> None:
    for id_, seconds in clocks.items():
        scene.cluster.skew(id_, round(seconds * 1000))


def _slow_store(scene: Scene, latencies: Mapping[int, float]) -> None:
    for id_, seconds in latencies.items():
        scene.cluster.trace.add("fault", host_of(id_), f"the store takes {seconds:g} s")
        scene.cluster.world.ensemble.set_latency(host_of(id_), seconds)


def _lag(scene: Scene, lags: Mapping[int, float]) -> None:
    for server, seconds in lags.items():
        scene.cluster.trace.add("fault", f"zookeeper-{server}", f"lags by {seconds:g} s")
        scene.cluster.world.ensemble.set_lag(server, seconds)


def _lose_answer(cluster: SimulatedCluster, id_: int) -> None:
    """Let the answer to a node's next commit be lost with its connection, which it may open again at once."""

    def bounce() -> None:
        cluster.disconnect(id_)
        cluster.reconnect(id_)

    cluster.world.ensemble.on_next_multi(host_of(id_), bounce, when="after")


def _fail_disk(cluster: SimulatedCluster, id_: int) -> None:
    cluster.trace.add("fault", host_of(id_), "disk fails")
    cluster.brokers[id_].disk.fail()


def _mend_disk(cluster: SimulatedCluster, id_: int) -> None:
    cluster.brokers[id_].mend_disk()


def _write_requests(scene: Scene, targets: Mapping[str, tuple[int, ...]]) -> None:
    data = formats.encode_reassign_partitions({partition_named(name): target for name, target in targets.items()})
    there = scene.cluster.durable.tree.read(paths.REASSIGN_PARTITIONS) is not None
    path = paths.REASSIGN_PARTITIONS
    scene.cluster.world.ensemble.commit_by_hand([Set(path, data, ANY_VERSION) if there else Create(path, data)])


def _rewrite_topic(scene: Scene, topics: Mapping[str, TopicPlan]) -> None:
    """Write topics as tools do that know neither ids nor reassignments."""
    for name, plan in topics.items():
        partitions = {number: ReplicaAssignment(replicas) for number, replicas in enumerate(plan.assignment)}
        data = formats.encode_topic(TopicZnode(partitions))
        scene.cluster.world.ensemble.commit_by_hand([Set(paths.topic(name), data, ANY_VERSION)])


# --- requests ---------------------------------------------------------------------------------------------------


async def create(cluster: SimulatedCluster, topics: Mapping[str, TopicPlan]) -> None:
    """Create topics, and wait until each of their partitions has a leader. Raises ApiError, NotInTime."""
    for name, plan in topics.items():
        await cluster.create_topic(
            name, plan.assignment, partitions=plan.partitions, replication_factor=plan.replication_factor
        )
        for number in range(plan.count):
            partition = f"{name}-{number}"
            await cluster.until(partial(_is_led, cluster, partition), what=f"a leader of {partition}")


def _is_led(cluster: SimulatedCluster, partition: str) -> bool:
    return cluster.partition(partition) is not None


async def _stop(scene: Scene, nodes: Iterable[Node]) -> None:
    for id_ in scene.nodes(nodes):
        await scene.cluster.stop(id_)


async def _cancel(scene: Scene, names: Iterable[str]) -> None:
    await scene.cluster.reassign(dict.fromkeys(names))


async def _alter_topic(scene: Scene, topics: Mapping[str, Mapping[str, str | None]]) -> None:
    asked = [
        AlterConfigsResource(
            ConfigResource(ConfigResourceType.TOPIC, name),
            tuple(
                AlterableConfig(setting, ConfigOperation.DELETE if value is None else ConfigOperation.SET, value or "")
                for setting, value in settings.items()
            ),
        )
        for name, settings in topics.items()
    ]
    for outcome in await scene.cluster.admin.incremental_alter_configs(asked):
        if outcome.error is not ErrorCode.NONE:
            raise ApiError(outcome.error, outcome.message)


def _elect(kind: ElectionType) -> Callable[[Scene, Sequence[str]], Awaitable[None]]:
    async def elect(scene: Scene, names: Sequence[str]) -> None:
        await scene.cluster.elect_leaders(kind, names)

    return elect


async def _elect_in_order(scene: Scene, orders: Mapping[str, tuple[int, ...]]) -> None:
    await scene.cluster.elect_leaders(ElectionType.PREFERRED, (), orders)


async def _produce(scene: Scene, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        await scene.cluster.produce(name, [f"{name} {number}".encode() for number in range(count)])


VERBS: Final[Mapping[str, Verb]] = {
    "create_topic": Verb("Create topics.", ask=lambda scene, topics: create(scene.cluster, topics)),
    "delete_topic": Verb(
        "Delete topics; what they have goes in its own time.",
        ask=lambda scene, names: scene.cluster.delete_topic(*names),
    ),
    "alter_topic": Verb("Change settings of topics at run time; null inherits them again.", ask=_alter_topic),
    "reassign": Verb(
        "Begin or override reassignments through the admin api.",
        ask=lambda scene, targets: scene.cluster.reassign(targets),
    ),
    "cancel": Verb("Cancel reassignments through the admin api.", ask=_cancel),
    "elect_preferred": Verb("Elect the preferred leaders of partitions.", ask=_elect(ElectionType.PREFERRED)),
    "elect_in_order": Verb(
        "Put the replicas of partitions into a new order, and elect the first of it.", ask=_elect_in_order
    ),
    "elect_unclean": Verb("Elect leaders of partitions, from outside the ISR too.", ask=_elect(ElectionType.UNCLEAN)),
    "write_requests": Verb("Write /admin/reassign_partitions, as Kafka's old tools do.", strike=_write_requests),
    "rewrite_topic": Verb(
        "Write the assignment of topics by hand, without their ids and reassignments, as old tools do.",
        strike=_rewrite_topic,
    ),
    "produce": Verb("Write so many records with acks=all, and wait until they are acknowledged.", ask=_produce),
    "crash": Verb("Nodes die at once, and nobody is told.", strike=_each(SimulatedCluster.crash)),
    "restart": Verb("Nodes start; those that are alive die before.", strike=_each(SimulatedCluster.restart)),
    "wipe": Verb(
        "Brokers lose their disk and start on an empty one.",
        strike=_each(partial(SimulatedCluster.restart, wipe=True)),
    ),
    "stop": Verb("Nodes end in good order.", ask=_stop),
    "pause": Verb("Nodes stand still, as on SIGSTOP.", strike=_each(SimulatedCluster.pause)),
    "wake": Verb("Nodes go on after a pause.", strike=_each(SimulatedCluster.wake)),
    "skew": Verb("Wall clocks of nodes are off by so much.", strike=_skew),
    "fail_disk": Verb("Disks of brokers fail.", strike=_each(_fail_disk)),
    "mend_disk": Verb("Disks of brokers work again.", strike=_each(_mend_disk)),
    "expire": Verb("Sessions of nodes with the store end at once.", strike=_each(SimulatedCluster.expire)),
    "disconnect": Verb(
        "Nodes lose the store, and their session if it takes too long.", strike=_each(SimulatedCluster.disconnect)
    ),
    "reconnect": Verb("Nodes reach the store again.", strike=_each(SimulatedCluster.reconnect)),
    "lose_answer": Verb("The answer to the next commit of a node is lost.", strike=_each(_lose_answer)),
    "slow_store": Verb("Each message between nodes and the store takes so long.", strike=_slow_store),
    "lag": Verb("Followers of the ensemble (server 2, 3, ...) come so late to each commit.", strike=_lag),
    "depose": Verb("An operator deletes /controller.", strike=lambda scene, _: scene.cluster.depose()),
    "isolate": Verb("Nothing gets through between nodes and others: it is held back, not lost.", strike=_isolate),
    "heal": Verb("What was isolated is together again.", strike=lambda scene, _: scene.cluster.heal()),
    "break_connections": Verb("The connections between two nodes break; they may connect again.", strike=_break),
    "silence_connections": Verb("The connections between two nodes die without a word.", strike=_silence),
    "slow": Verb("Links from and to nodes are slow.", strike=_slow),
}
"""Every verb of the language."""
