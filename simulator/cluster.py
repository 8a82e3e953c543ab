"""A whole cluster in one trio run, which scenarios, random runs and tests drive.

Nodes are named by their ids (brokers 1, 2, ...; controllers 101, 102, ...), partitions as `topic-number`. Sync methods
take effect at once; async methods use the cluster's own admin api, or wait in virtual time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

import trio
from attrs import define, field

from simulator import liveness
from simulator.administration import ADMIN, partition_named
from simulator.broker_process import BrokerProcess
from simulator.disk import Disk
from simulator.hooks import Hooks
from simulator.inspection import Inspected
from simulator.kafka.registration import decode_registered
from simulator.linearizability import operations
from simulator.load import Load
from simulator.network.network import Link, SimulatedNetwork
from simulator.observed_admin import ObservedAdmin
from simulator.process import ControllerProcess, ProcessState
from simulator.safety.invariants import Safety
from simulator.safety.rollout_limits import RoomKnown
from simulator.scheduling import generator, wall_clock_ms
from simulator.settings import PORT, Settings, host_of, links_of
from simulator.steps import ControllerStep, Moment, Steps
from simulator.store.durable import Durable
from simulator.store.ensemble import SimulatedEnsemble
from simulator.trace import Trace
from simulator.world import World
from transport.messages import MetadataRequest, Request
from transport.store import paths
from transport.store.limits import RequestLimits
from transport.store.protocol import Create, Delete
from transport.wire import open_connection

R = TypeVar("R")

CLIENT: Final = "client"
POLL_SECONDS: Final = 0.05
START_SECONDS: Final = 60.0


class NotInTime(Exception):
    """A condition did not become true within its virtual time."""


@define(eq=False)
class SimulatedCluster(Inspected):
    """The cluster, and every way to disturb it. Open one with `simulated_cluster`."""

    resting: dict[int, None] = field(factory=dict, init=False)
    """The brokers that `settle` crashes for a while after the faults."""

    absent: dict[int, None] = field(factory=dict, init=False)
    """Those of them that are dead now."""

    _blocked: dict[tuple[str, str], None] = field(factory=dict, init=False)

    # --- what a client does -----------------------------------------------------------------------------------------

    async def ask(self, node_id: int, request: Request[R], *, within: float = 10.0) -> R:
        """Send a node one request, without retries, as a client that also knows the settings' own apis.

        Raises ApiError if it answers with an error, WireError if it cannot be reached or is silent for `within`.
        """
        network, own_apis = self.world.network.at(CLIENT), self.world.settings.own_apis
        async with open_connection(
            network,
            host_of(node_id),
            self.process(node_id).port,
            client_id=CLIENT,
            connect_timeout=within,
            own_apis=own_apis,
        ) as connection:
            return await connection.call(request, timeout=within)

    async def read_from(self, controller_id: int, *, within: float = 20.0) -> None:
        """Have a controller itself describe all topics, in office or not. Raises ApiError or WireError."""
        topics, partitions = self.durable.topics(), [tp for tp, _ in self.durable.partitions()]
        self.trace.add("admin", CLIENT, f"read from {controller_id}")
        request = self.world.safety.history.request()
        request.sent_to(controller_id)
        answer = await self.ask(controller_id, MetadataRequest(), within=within)
        request.answered(operations.described(topics, partitions, answer.partitions))

    # --- what happens to processes ------------------------------------------------------------------------------

    def crash(self, node_id: int) -> None:
        """Kill a node at once."""
        self.process(node_id).crash()

    def restart(self, node_id: int, *, wipe: bool = False) -> None:
        """Start a node, killing it first if it is alive; with `wipe`, a broker loses its disk."""
        process = self.process(node_id)
        process.crash()
        if wipe and isinstance(process, BrokerProcess):
            process.lose_disk()
        process.start()

    async def stop(self, node_id: int) -> None:
        """Shut a node down cleanly."""
        await self.process(node_id).stop()

    def pause(self, node_id: int, *, keeps_session: bool = False) -> None:
        """Pause a node; with `keeps_session`, its session with the store survives."""
        self.process(node_id).pause(keeps_session=keeps_session)

    def suspend(self, node_id: int, *, loses_session: bool = False) -> None:
        """Stop the event loop of a node; with `loses_session`, its heartbeats stop, too."""
        self.process(node_id).suspend(loses_session=loses_session)

    def wake(self, node_id: int) -> None:
        """Resume a node after a pause, or where it was suspended."""
        self.process(node_id).wake()

    def skew(self, node_id: int, milliseconds: int) -> None:
        """Set the difference between a node's wall clock and the others'."""
        self.trace.add("fault", host_of(node_id), f"clock is off by {milliseconds} ms")
        self.process(node_id).skew_ms = milliseconds

    # --- what happens to the store ------------------------------------------------------------------------------

    def expire(self, node_id: int) -> None:
        """End a node's session with the store at once."""
        self.trace.add("fault", host_of(node_id), "session expires")
        self.world.safety.depositions.ended_by_hand(host_of(node_id))
        self.world.ensemble.expire(host_of(node_id))

    def disconnect(self, node_id: int) -> None:
        """Cut a node off from the store; its session expires if that lasts too long."""
        self.trace.add("fault", host_of(node_id), "loses the store")
        self.world.ensemble.disconnect(host_of(node_id))

    def reconnect(self, node_id: int) -> None:
        """Let a node reach the store again."""
        self.trace.add("fault", host_of(node_id), "reaches the store again")
        self.world.ensemble.reconnect(host_of(node_id))

    def depose(self) -> None:
        """Delete `/controller` by hand, as operators do to have a new controller elected.

        Among Kafka's brokers that would give the office back to them, so there the lock of our controllers is deleted.
        """
        path = paths.OFFICE_LOCK if self.world.settings.is_kafkas else paths.CONTROLLER
        if self.durable.tree.read(path) is not None:
            self.trace.add("fault", ADMIN, f"deletes {path}")
            self.world.ensemble.commit_by_hand([Delete(path)])

    # --- what happens to the network ----------------------------------------------------------------------------

    def isolate(self, some: Iterable[int], others: Sequence[int], *, one_way: bool = False) -> None:
        """Hold back everything that `some` nodes send to `others`; unless `one_way`, the other direction too."""
        links = links_of(some, others, one_way=one_way)
        for source, destination in [link for link in links if link[0] != link[1]]:
            self.trace.add("fault", f"{source}>{destination}", "blocked")
            self._blocked[source, destination] = None
            self.world.network.block(source, destination)

    def heal(self) -> None:
        """Undo every `isolate`."""
        for source, destination in self._blocked:
            self.trace.add("fault", f"{source}>{destination}", "unblocked")
            self.world.network.unblock(source, destination)
        self._blocked.clear()

    def break_connections(self, a: int, b: int) -> None:
        """Break the connections between two nodes; they may connect again at once."""
        self.trace.add("fault", f"{host_of(a)}>{host_of(b)}", "connections break")
        self.world.network.break_connections(host_of(a), host_of(b))

    def silence_connections(self, a: int, b: int, *, one_way: bool = False) -> None:
        """Drop the connections between two nodes silently, or only what `a` sends; they may connect again at once."""
        self.trace.add("fault", f"{host_of(a)}>{host_of(b)}", "connections fall silent")
        self.world.network.silence_connections(host_of(a), host_of(b), one_way=one_way)

    # --- waiting ------------------------------------------------------------------------------------------------

    def at(self, matches: Callable[[ControllerStep], bool], strike: Callable[[ControllerStep], None]) -> None:
        """Call `strike` at the next step that matches, within that step: nothing else happens in between."""

        def watcher(step: ControllerStep) -> bool:
            if not matches(step):
                return False
            strike(step)
            return True

        self.steps.watch(watcher)

    def crash_at(self, round_name: str, moment: Moment = Moment.COMMITTED, *, of: str | None = None) -> None:
        """Crash the next controller that reaches this moment of a round, of partition `of` if given."""
        tp = None if of is None else partition_named(of)

        def matches(step: ControllerStep) -> bool:
            return (step.round, step.moment) == (round_name, moment) and (tp is None or tp in step.subjects)

        self.at(matches, lambda step: self.crash(step.controller_id))

    async def until(self, holds: Callable[[], bool], *, within: float = 60.0, what: str = "the condition") -> None:
        """Wait until a condition holds. Raises NotInTime after `within` virtual seconds."""
        with trio.move_on_after(within):
            while not holds():  # noqa: ASYNC110  anything may change what holds
                await trio.sleep(POLL_SECONDS)
            return
        raise NotInTime(f"{what} did not happen within {within:g} s")

    async def until_moved(self, name: str, *, within: float = 60.0) -> None:
        """Wait until a partition is no longer being reassigned. Raises NotInTime."""
        tp = partition_named(name)

        def is_done() -> bool:
            assignment = self.durable.assignment(tp)
            return assignment is not None and not assignment.is_being_reassigned

        await self.until(is_done, within=within, what=f"the end of {name}'s reassignment")

    def mend(self) -> None:
        """End all faults: wake or start every node that does not run, and repair network, store and disks.

        A broker whose disk failed is restarted: only then does it use the failed directories again. So is one that
        refused an order, which the controller need not repeat, or whose registration was damaged.
        """
        self.heal()
        self.world.network.mend()
        self.world.ensemble.mend()
        self.world.signals.clear()
        for controller in self.controllers.values():
            controller.release_queue()
        for broker in self.brokers.values():
            broker.heed()
            broker.disk.make_room()
            if not broker.disk.is_in_use:
                broker.mend_disk()
                broker.crash()
            elif broker.has_lost_orders or self._is_misregistered(broker.id):
                broker.crash()
        for process in self.processes():
            process.answer_all()
            process.wake()
            if process.state is ProcessState.DEAD:
                process.start()

    def _is_misregistered(self, broker_id: int) -> bool:
        """Return whether the registration of a broker exists and cannot be read."""
        return self.durable.tree.read(paths.broker(broker_id)) is not None and broker_id not in self.durable.brokers()

    async def settle(self, *, within: float = 120.0) -> None:
        """End all faults and wait until the cluster is well. Raises Violation if that takes too long.

        Then the `resting` brokers leave the ISRs and crash, and start again when the cluster is well without them.
        """
        self.mend()
        await self._until_well(within)
        if self.resting:
            await self._rest()
            await self._until_well(within)
            self.absent.clear()
            for broker in self.brokers.values():
                broker.heed()
            await self._until_well(within)

    async def _rest(self) -> None:
        for broker in self.brokers.values():
            broker.neglect.kept_out.update((tp, tuple(self.resting)) for tp, _ in self.durable.partitions())
        await trio.sleep(self.world.settings.replica_lag_time)
        self.absent, self.resting = self.resting, {}
        for broker_id in self.absent:
            self.crash(broker_id)

    async def _until_well(self, within: float) -> None:
        with trio.move_on_after(within):
            while not liveness.is_well(self):
                self._start_what_died()
                await trio.sleep(POLL_SECONDS * 10)
            return
        self.world.safety.report("once faults stop, everything is mended", "; ".join(liveness.faults(self)[:5]))
        await trio.sleep_forever()

    def _start_what_died(self) -> None:
        for process in self.processes():
            if process.state is ProcessState.DEAD and process.id not in self.absent:
                process.start()

    async def start(self) -> None:
        """Start every process and wait until the cluster is in service."""
        first = self.world.settings.first_controller
        if first is not None:
            self.process(first).start()
            await self.until(lambda: self.active_controller == first, within=START_SECONDS, what="the first controller")
        self._start_what_died()
        await self.until(self._is_in_service, within=START_SECONDS, what="the start of the cluster")

    def _is_in_service(self) -> bool:
        everyone = tuple(self.brokers)
        known = [process.handle.metadata.live_brokers for process in self.brokers.values() if process.handle]
        return self.active_controller is not None and known == [everyone] * len(everyone)


@asynccontextmanager
async def simulated_cluster(
    settings: Settings, *, seed: int = 0, trace: Trace | None = None
) -> AsyncIterator[SimulatedCluster]:
    """Run a cluster, which is in service when the block begins, in a trio run on virtual time.

    Raises Violation in the middle of the block as soon as an invariant does not hold. Exceptions of the block pass
    through unchanged.
    """
    trace = trace or Trace()
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        safety = Safety(
            trace,
            nursery.cancel_scope.cancel,
            settings.unclean_leader_election,
            settings.min_insync_replicas,
            settings.is_kafkas,
            settings.delete_topic_enable,
        )
        steps = Steps(trace, on_event=safety.began_event)
        steps.watch(safety.decisions.stepped)
        steps.watch(safety.stepped)
        hooks = Hooks(trace, safety, steps)
        servers, seen = settings.servers, hooks.committed
        network = SimulatedNetwork(generator(seed, "network"), hooks.delivered)
        network.default_link = Link(settings.latency, settings.latency / 2, settings.bytes_per_second)
        ensemble = SimulatedEnsemble(generator(seed, "ensemble"), wall_clock_ms, servers=servers, on_commit=seen)
        ensemble.on_look = safety.decisions.looked
        ensemble.default_latency = settings.store_latency
        ensemble.limits = RequestLimits(settings.jute_maxbuffer)
        decode = {"decode_broker": decode_registered} if settings.is_kafkas else {}
        safety.durable = Durable(ensemble.tree, **decode)
        world = World(seed, settings, trace, steps, safety, network, ensemble, nursery)
        if settings.is_kafkas:
            ensemble.commit_by_hand([Create("/cluster"), Create(paths.CLUSTER_ID, b'{"version":"1","id":"simulated"}')])
        nursery.start_soon(ensemble.run)
        cluster = _assemble(world)
        try:
            await cluster.start()
            yield cluster
        except BaseException as error:  # noqa: BLE001  raised below, unchanged and not in a group
            failure = error
        trace.end()
        for process in cluster.processes():
            process.crash()
        nursery.cancel_scope.cancel()
    if safety.violation is not None:
        raise safety.violation from failure
    if failure is not None:
        raise failure


def _room_known(controllers: Mapping[int, ControllerProcess], host: str, name: str) -> RoomKnown:
    """Return the room on disks that the controller on a host knows of for a rollout, None where it asked in vain."""
    [service] = [each.service for each in controllers.values() if each.host == host]
    office = None if service is None else service.office
    rollout = None if office is None else office.context.rollouts.by_name.get(name)
    return {} if rollout is None else {**dict.fromkeys(rollout.untold), **rollout.disks}


def _brokers_known(controllers: Mapping[int, ControllerProcess], host: str) -> Collection[int]:
    """Return the brokers that are alive, as far as the controller on a host knows."""
    [service] = [each.service for each in controllers.values() if each.host == host]
    office = None if service is None else service.office
    return () if office is None else office.context.brokers.keys()


def _assemble(world: World) -> SimulatedCluster:
    settings = world.settings
    controllers = {id_: ControllerProcess(world, id_) for id_ in settings.controller_ids}
    brokers = {id_: BrokerProcess(world, id_, Disk(world.safety, id_)) for id_ in settings.broker_ids}
    world.safety.disks.update((id_, process.disk) for id_, process in brokers.items())
    world.safety.rollouts.room_known = partial(_room_known, controllers)
    world.safety.rollouts.brokers_known = partial(_brokers_known, controllers)
    bootstrap = [(process.host, PORT) for process in controllers.values()]
    admin = ObservedAdmin(world.network.at(ADMIN), bootstrap, None, 30.0)
    return SimulatedCluster(world, admin, Load(world), controllers, brokers, world.safety.durable)
