"""Faults, shutdowns and starts of processes, and faults of their disks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import field, frozen

from simulator.actions.scene import (
    CannotBeDone,
    Node,
    NodeStrike,
    Request,
    Scene,
    Strike,
    as_nodes,
    broker_of,
    controller_of,
)
from simulator.administration import partition_named
from simulator.broker_process import BrokerProcess
from simulator.cluster import SimulatedCluster
from simulator.process import ProcessState
from simulator.refusals import Refusal
from simulator.settings import host_of
from simulator.steps import Moment
from transport.errors import ErrorCode
from transport.metadata import TopicPartition

SERVICE_CALLS: Final = ("become_leader", "become_follower", "stop_replica")
"""The methods of a service that carry out orders for single replicas."""


def as_words(words: str | Iterable[str]) -> tuple[str, ...]:
    """Return words as a tuple; a single one needs none."""
    return (words,) if isinstance(words, str) else tuple(words)


@frozen
class Crash(NodeStrike):
    """Kill nodes without warning; with `noticed`, the store ends their sessions at once."""

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
class ChangeEndpoint(NodeStrike):
    """Let brokers listen on another port while they run; their connections break, and they register the port."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Change the endpoint of a broker. Raises CannotBeDone if it is not in service."""
        if not broker_of(cluster, id_).change_endpoint():
            raise CannotBeDone(f"broker {id_} is not in service now")


@frozen
class Stop(Request):
    """Shut nodes down cleanly; brokers request a controlled shutdown."""

    nodes: tuple[Node, ...] = field(converter=as_nodes)

    async def ask(self, scene: Scene) -> None:
        """Stop the nodes one at a time."""
        for id_ in scene.nodes(self.nodes):
            await scene.cluster.stop(id_)


@frozen
class RestWithout(Strike):
    """Crash brokers once all faults have ended, and start them when the others know all that follows from it.

    They leave the ISRs before they crash, so that some of what follows changes no state.
    """

    nodes: tuple[Node, ...] = field(converter=as_nodes)

    def strike(self, scene: Scene) -> None:
        """Let the brokers rest at the end. Raises CannotBeDone if there is none."""
        for id_ in scene.nodes(self.nodes):
            scene.cluster.resting[broker_of(scene.cluster, id_).id] = None


@frozen
class Pause(NodeStrike):
    """Freeze nodes, as SIGSTOP does; with `keeps_session`, their sessions with the store survive."""

    keeps_session: bool = False

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Pause a node."""
        cluster.pause(id_, keeps_session=self.keeps_session)


@frozen
class Suspend(NodeStrike):
    """Stop the event loops of nodes until they wake; with `loses_session`, their heartbeats, too.

    None of their tasks runs, but others can connect and send to them. Timers that became due all fire at the end.
    """

    loses_session: bool = False

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Suspend a node."""
        cluster.suspend(id_, loses_session=self.loses_session)


@frozen
class Wake(NodeStrike):
    """Let nodes that were paused or suspended continue."""

    strike_node = staticmethod(SimulatedCluster.wake)


@frozen
class Skew(Strike):
    """Set the error of the wall clocks of nodes, in seconds."""

    seconds: Mapping[Node, float]

    def strike(self, scene: Scene) -> None:
        """Set the clocks."""
        for node, seconds in self.seconds.items():
            for id_ in scene.victims(self, (node,)):
                scene.cluster.skew(id_, round(seconds * 1000))


@frozen
class FailDisk(NodeStrike):
    """Make a log directory of brokers fail, or all of them; the data stays intact.

    A broker finds out when it next uses the directory; if `noticed`, also when it next checks its directories.
    """

    directory: int | None = None
    noticed: bool = False

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Fail the directory of a broker."""
        broker_of(cluster, id_).fail_log_dir(self.directory, noticed=self.noticed)


@frozen
class MendDisk(NodeStrike):
    """Make the disks of brokers work again; a broker uses a directory that failed only after its next start."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Mend the disk of a broker."""
        broker_of(cluster, id_).mend_disk()


@frozen
class LimitDisks(Strike):
    """Let brokers tell how many bytes are free on their disks, which never fill up."""

    free: Mapping[int, int]

    def strike(self, scene: Scene) -> None:
        """Limit the disks."""
        for id_, free in self.free.items():
            scene.cluster.trace.add("fault", host_of(id_), f"has {free} bytes free")
            broker_of(scene.cluster, id_).disk.free = free


@frozen
class _ReplicaStrike(Strike):
    """A strike on each of some replicas: the partitions of brokers."""

    partitions: Mapping[Node, Sequence[str]]

    def strike(self, scene: Scene) -> None:
        """Strike each replica."""
        for node, names in self.partitions.items():
            for id_ in scene.victims(self, (node,)):
                for tp in map(partition_named, names):
                    self.strike_replica(scene.cluster.brokers[id_], tp)

    @abstractmethod
    def strike_replica(self, broker: BrokerProcess, tp: TopicPartition) -> None:
        """Strike a replica."""


@frozen
class StopFetching(_ReplicaStrike):
    """Keep brokers from fetching these partitions, which they follow.

    They leave the ISR once their leader has records that they lack for too long: see `KeepOutOfIsr` for idle ones.
    """

    def strike_replica(self, broker: BrokerProcess, tp: TopicPartition) -> None:
        """Stop the fetches of a partition."""
        broker.stop_fetching(tp)


@frozen
class ResumeFetching(_ReplicaStrike):
    """Let brokers fetch these partitions again."""

    def strike_replica(self, broker: BrokerProcess, tp: TopicPartition) -> None:
        """Resume the fetches of a partition."""
        broker.resume_fetching(tp)


@frozen
class RefuseOrders(_ReplicaStrike):
    """Let brokers refuse with an error each order about these partitions, and carry out none."""

    error: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR

    def strike_replica(self, broker: BrokerProcess, tp: TopicPartition) -> None:
        """Refuse orders about a partition."""
        broker.refuse_orders(tp, self.error)


@frozen
class FailOrders(_ReplicaStrike):
    """Let the services of brokers raise in some methods for these partitions: `times` each, by default until they obey.

    The methods are become_leader, become_follower and stop_replica, by default all. Only Klamm's brokers have them.
    """

    calls: tuple[str, ...] = field(default=SERVICE_CALLS, converter=as_words)
    times: int | None = None

    def strike_replica(self, broker: BrokerProcess, tp: TopicPartition) -> None:
        """Let a service raise for a partition."""
        broker.fail_orders(tp, self.calls, self.times)


@frozen
class Hesitate(NodeStrike):
    """Let brokers take so many seconds longer for each partition of an order; 0 ends this."""

    seconds: float = 1.0

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Let a broker hesitate."""
        broker_of(cluster, id_).hesitate(self.seconds)


@frozen
class ObeyOrders(NodeStrike):
    """Let brokers carry out all orders again; one restarts that refused what the controller does not repeat."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """End the refusals of a broker."""
        broker = broker_of(cluster, id_)
        broker.obey()
        if broker.has_lost_orders and broker.state is ProcessState.RUNNING:
            cluster.restart(id_)


@frozen
class RefuseRequests(Strike):
    """Let nodes answer requests of some apis with an error, or with nothing if none is given, and not carry them out.

    With `carried_out`, they take effect in spite of that.
    """

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    apis: tuple[str, ...] = field(converter=as_words)
    error: ErrorCode | None = None
    carried_out: bool = False

    def strike(self, scene: Scene) -> None:
        """Refuse the requests."""
        kind = "with an error" if self.error is not None else "with nothing"
        noted = partial(scene.count, f"requests answered {kind}{' though done' * self.carried_out}")
        refusal = Refusal(self.apis, self.error, self.carried_out, noted)
        for id_ in scene.victims(self, self.nodes):
            scene.cluster.process(id_).refuse(refusal)


@frozen
class AnswerRequests(NodeStrike):
    """Let nodes answer all requests again."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """End the refusals of a node."""
        cluster.process(id_).answer_all()


@frozen
class KeepOutOfIsr(Strike):
    """Keep followers of partitions out of the ISR, even if they are in sync; an empty list ends this."""

    followers: Mapping[str, Sequence[int]]

    def strike(self, scene: Scene) -> None:
        """Set the exclusions at the brokers, whose next check proposes an ISR without the followers."""
        for name, followers in self.followers.items():
            scene.cluster.trace.add("fault", name, f"followers {list(followers)} are kept out of the ISR")
            for broker in scene.cluster.brokers.values():
                broker.neglect.kept_out[partition_named(name)] = tuple(followers)


@frozen
class HoldQueue(NodeStrike):
    """Hold events in the queues of controllers, after the one in progress."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Hold the queue of a controller."""
        controller_of(cluster, id_).hold_queue()


@frozen
class ReleaseQueue(NodeStrike):
    """Let controllers process the events that waited."""

    def strike_node(self, cluster: SimulatedCluster, id_: int) -> None:
        """Release the queue of a controller."""
        controller_of(cluster, id_).release_queue()


@frozen
class CrashOnArrival(Strike):
    """Crash the next controller that publishes a round, once its request has arrived at each of these brokers.

    Without `brokers`, at each that runs then. No broker has acted on its request before.
    """

    round: str
    brokers: tuple[Node, ...] = field(default=(), converter=as_nodes)

    def strike(self, scene: Scene) -> None:
        """Wait for the round."""
        scene.cluster.at(
            lambda step: (step.round, step.moment) == (self.round, Moment.PUBLISHED),
            lambda step: self._await_arrivals(scene, step.controller_id),
        )

    def _await_arrivals(self, scene: Scene, controller_id: int) -> None:
        cluster = scene.cluster
        running = [id_ for id_, broker in cluster.brokers.items() if broker.state is ProcessState.RUNNING]
        missing = set(scene.nodes(self.brokers) or running)

        def arrived(source: int, broker_id: int) -> bool:
            if source == controller_id:
                missing.discard(broker_id)
            if not missing:
                cluster.crash(controller_id)
            return not missing

        cluster.steps.watch_arrivals(arrived)
