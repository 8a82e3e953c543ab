"""The processes of a simulated cluster: controllers and brokers that run, pause, die and restart.

A process that dies is first cut off from network and store, so that nothing that it does during its cancellation
affects the world. A paused process is frozen at its edges: its timers continue, but nothing comes in or goes out. A
suspended one runs none of its tasks, but the world takes its connections and sends it messages, which wait for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

import trio
from trio.lowlevel import Task

from broker.config import BrokerConfig
from broker.kit import BrokerHandle, run_broker
from broker.reference.log_dirs import AllLogDirsFailed, look_after
from broker.registration import BrokerIdInUse
from broker.service import Service
from controller.config import ControllerConfig
from controller.embedding import run as run_controller
from controller.node.service import ControllerService
from simulator.disk import Disk
from simulator.followers import Neglect, SimulatedService
from simulator.refusals import Refusal, Refusals, RefusingNetwork
from simulator.scheduling import generator, wall_clock_ms
from simulator.settings import PORT, host_of
from simulator.steps import StepObserver
from simulator.suspension import resume, suspend
from simulator.world import World
from transport.errors import ErrorCode
from transport.host import Host
from transport.metadata import TopicPartition
from transport.store.protocol import StoreUnavailable

_NOT_A_FAULT: Final = (StoreUnavailable, BrokerIdInUse, AllLogDirsFailed, OSError)
"""Errors that may end a process in a faulty world; its supervisor starts it again."""


class ProcessState(Enum):
    """The states of a process."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class Process(ABC):
    """One node of the cluster. A process may be started again after it died."""

    def __init__(self, world: World, node_id: int) -> None:
        self.id = node_id
        self.host = host_of(node_id)
        self.state = ProcessState.DEAD
        self.skew_ms = 0
        self.port = PORT
        self.refusals = Refusals()
        self.started = trio.Event()
        self._world = world
        self._incarnation = 0
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._ended.set()
        self._is_killed = False
        self._root: Task | None = None

    @property
    def is_away(self) -> bool:
        """Whether the store cannot be reached from its host."""
        return self._world.ensemble.is_away(self.host)

    def start(self) -> None:
        """Start the process; `started` is set once it is in service. Raises RuntimeError if it is running."""
        if self.state is not ProcessState.DEAD:
            raise RuntimeError(f"{self.host} runs already")
        self.state = ProcessState.RUNNING
        self._incarnation += 1
        self._is_killed = False
        self.refusals.has_lost_orders = False
        self._root = None
        self.started = trio.Event()
        self._scope = trio.CancelScope()
        before, self._ended = self._ended, trio.Event()
        self._world.trace.add("fault", self.host, "starts")
        self._world.nursery.start_soon(self._run, self._incarnation, self._scope, before, self._ended, name=self.host)

    def crash(self) -> None:
        """Die at once: others notice only its silence. Does nothing to a dead process."""
        if self.state is ProcessState.DEAD:
            return
        self._world.trace.add("fault", self.host, "crashes")
        self._is_killed = True
        self._world.network.cut(self.host)
        self._world.ensemble.cut(self.host)
        self._resume()
        self.state = ProcessState.DEAD
        self._scope.cancel()

    async def stop(self) -> None:
        """Shut down cleanly, as on SIGTERM."""
        self._world.trace.add("fault", self.host, "is stopped")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._until_ended, nursery.cancel_scope)
            await self._leave()
            self._scope.cancel()

    def pause(self, *, keeps_session: bool = False) -> None:
        """Pause, as on SIGSTOP, if running; with `keeps_session`, only heartbeats still reach the store."""
        if self.state is ProcessState.RUNNING:
            self._world.trace.add("fault", self.host, "pauses")
            self.state = ProcessState.PAUSED
            self._world.network.freeze(self.host)
            self._world.ensemble.freeze(self.host, beats=keeps_session)

    def suspend(self, *, loses_session: bool = False) -> None:
        """Run no task, if running, until `wake`; with `loses_session`, no heartbeat reaches the store either."""
        if self.state is ProcessState.RUNNING and self._root is not None:
            self._world.trace.add("fault", self.host, "is suspended")
            self.state = ProcessState.PAUSED
            self._world.ensemble.freeze(self.host, beats=not loses_session)
            suspend(self._root)

    def wake(self) -> None:
        """Resume after a pause, or where it was suspended."""
        if self.state is ProcessState.PAUSED:
            self._world.trace.add("fault", self.host, "wakes")
            self.state = ProcessState.RUNNING
            self._world.network.thaw(self.host)
            self._world.ensemble.thaw(self.host)
            self._resume()

    def refuse(self, refusal: Refusal) -> None:
        """Answer some requests with an error, or not at all, until `answer_all`, whatever process runs."""
        error = "nothing" if refusal.error is None else refusal.error.name
        self._world.trace.add("fault", self.host, f"answers {error} to {', '.join(refusal.apis)}")
        self.refusals.current = refusal

    def answer_all(self) -> None:
        """Answer all requests as they should be."""
        if self.refusals.current is not None:
            self._world.trace.add("fault", self.host, "answers all requests again")
            self.refusals.current = None

    def _resume(self) -> None:
        if self._root is not None:
            resume(self._root)

    async def _until_ended(self, scope: trio.CancelScope) -> None:
        """Cancel `scope` once the process has ended."""
        await self._ended.wait()
        scope.cancel()

    async def _leave(self) -> None:
        """Prepare for a clean shutdown; only brokers do something here."""
        await trio.lowlevel.checkpoint()

    @abstractmethod
    async def _serve(self, host: Host) -> None:
        """Run the process until cancelled."""

    async def _run(
        self, incarnation: int, scope: trio.CancelScope, predecessor_ended: trio.Event, ended: trio.Event
    ) -> None:
        await predecessor_ended.wait()
        self._root = trio.lowlevel.current_task()
        self._world.network.restore(self.host)
        host = Host(lambda: wall_clock_ms(self.skew_ms), generator(self._world.seed, f"{self.host}/{incarnation}"))
        try:
            with scope:
                await self._serve(host)
        except Exception as error:  # noqa: BLE001  the death of one process must not end the others
            if incarnation == self._incarnation and not self._is_killed:
                self._report(error)
        finally:
            if incarnation == self._incarnation:
                self.state = ProcessState.DEAD
                self._world.network.cut(self.host)
            ended.set()

    def _report(self, error: Exception) -> None:
        for leaf in _leaves(error):
            text = f"{type(leaf).__name__}: {leaf}"
            self._world.trace.add("fault", self.host, f"dies of {text}")
            if not isinstance(leaf, _NOT_A_FAULT):
                self._world.safety.report("no process dies of an unexpected exception", f"{self.host}: {text}")


class ControllerProcess(Process):
    """A controller."""

    service: ControllerService | None = None
    _is_held = False

    def hold_queue(self) -> None:
        """Process no event after the one in progress, until `release_queue` or a restart; they wait in the queue."""
        if self.service is not None and self.state is not ProcessState.DEAD:
            self._world.trace.add("fault", self.host, "holds its event queue")
            self.service.hold_events()
            self._is_held = True

    def release_queue(self) -> None:
        """Process the waiting events, and all later ones."""
        if self.service is not None and self._is_held:
            self._world.trace.add("fault", self.host, "releases its event queue")
            self.service.release_events()
            self._is_held = False

    def _is_in_office(self) -> bool:
        return self.service is not None and self.service.is_active

    async def _serve(self, host: Host) -> None:
        world, settings = self._world, self._world.settings
        config = ControllerConfig(
            self.id,
            host=self.host,
            port=PORT,
            zookeeper_session_timeout_ms=round(settings.session_timeout * 1000),
            request_timeout_ms=round(settings.request_timeout * 1000),
            controller_socket_timeout_ms=round(settings.request_timeout * 1000),
            auto_leader_rebalance_enable=settings.leader_rebalance_interval is not None,
            leader_imbalance_check_interval_seconds=settings.leader_rebalance_interval or 1,
            unclean_leader_election_enable=settings.unclean_leader_election,
            delete_topic_enable=settings.delete_topic_enable,
            jute_maxbuffer=settings.jute_maxbuffer,
            min_insync_replicas=settings.min_insync_replicas,
        )
        open_store = partial(world.ensemble.session, self.host, settings.session_timeout)
        self._is_held = False
        async with trio.open_nursery() as nursery:
            self.service = await nursery.start(
                partial(
                    run_controller,
                    config,
                    observer=StepObserver(self.id, world.steps, self._is_in_office),
                    open_store=partial(world.safety.sessions.watched, self.host, open_store),
                    network=RefusingNetwork(world.network.at(self.host), self.refusals),
                    host=host,
                )
            )
            self.started.set()


class BrokerProcess(Process):
    """A broker on a disk that outlives it: the reference broker, unless the settings have another service."""

    def __init__(self, world: World, node_id: int, disk: Disk) -> None:
        super().__init__(world, node_id)
        self.disk = disk
        self.handle: BrokerHandle | None = None
        self._service: SimulatedService | None = None
        self.neglect = Neglect()

    def crash(self) -> None:
        """Die at once; the logs stay as they are."""
        super().crash()
        self.disk.cut()

    async def _leave(self) -> None:
        """Request a controlled shutdown, which moves leadership away first."""
        if self.handle is not None and self.started.is_set() and self.state is ProcessState.RUNNING:
            safety = self._world.safety
            before = safety.before()
            outcome = await self.handle.shut_down()
            if outcome.is_relieved:
                safety.relieved(before, self.id)

    def stop_fetching(self, tp: TopicPartition) -> None:
        """Do not fetch a partition from its leader until `resume_fetching`, whatever the controller orders."""
        self._world.trace.add("fault", self.host, f"does not fetch {tp}")
        self.neglect.unfetched[tp] = None
        if self._service is not None:
            self._service.stop_fetching(tp)

    def resume_fetching(self, tp: TopicPartition) -> None:
        """Fetch a partition again."""
        if tp in self.neglect.unfetched:
            self._world.trace.add("fault", self.host, f"fetches {tp} again")
            del self.neglect.unfetched[tp]
            if self._service is not None:
                self._service.resume_fetching(tp)

    def refuse_orders(self, tp: TopicPartition, error: ErrorCode) -> None:
        """Answer an error to each order about a partition until `obey`."""
        self._world.trace.add("fault", self.host, f"answers {error.name} to orders about {tp}")
        self.neglect.refused[tp] = error
        if error is ErrorCode.KAFKA_STORAGE_ERROR:
            self.disk.disown(tp)

    def hesitate(self, seconds: float) -> None:
        """Take longer for each partition of an order until `obey`."""
        self._world.trace.add("fault", self.host, f"takes {seconds:g} s longer for orders")
        self.neglect.hesitation = seconds

    def obey(self) -> None:
        """Carry out all orders again, at once."""
        if self.neglect.refused or self.neglect.hesitation:
            self._world.trace.add("fault", self.host, "obeys again")
        self.neglect.refused.clear()
        self.neglect.hesitation = 0.0

    def heed(self) -> None:
        """End all neglect."""
        for tp in list(self.neglect.unfetched):
            self.resume_fetching(tp)
        self.neglect.kept_out.clear()
        self.obey()

    @property
    def has_lost_orders(self) -> bool:
        """Whether the running process has refused an order that the controller does not repeat."""
        return self.refusals.has_lost_orders or self.neglect.has_lost_orders

    def _reference_service(self, handle: BrokerHandle) -> Service:
        self._service = SimulatedService(handle, self.disk, self.neglect)
        return self._service

    def move(self) -> None:
        """Listen on another port from the next start on."""
        self.port += 1
        self._world.trace.add("fault", self.host, f"is to listen on port {self.port}")

    def change_endpoint(self) -> bool:
        """Listen on another port at once, if in service; return whether it is."""
        handle = self._handle_in_service()
        if handle is None:
            return False
        before, self.port = self.port, self.port + 1
        self._world.trace.add("fault", self.host, f"listens on port {self.port} instead")
        self._world.network.move_listener(self.host, before, self.port)
        handle.announce(self.port)
        return True

    def _handle_in_service(self) -> BrokerHandle | None:
        """Return the handle of the broker's process if it is neither starting nor ending."""
        is_running = self.started.is_set() and self.state is ProcessState.RUNNING
        is_ending = self.handle is not None and self.handle.nursery.cancel_scope.cancel_called
        return self.handle if is_running and not is_ending else None

    def fail_log_dir(self, directory: int | None, *, noticed: bool = False) -> None:
        """Make a log directory fail, or all if None; if `noticed`, the broker detects it as one on real disks does."""
        self._world.trace.add("fault", self.host, f"log directory {'any' if directory is None else directory} fails")
        self.disk.fail(directory)
        handle = self._handle_in_service()
        if noticed and handle is not None and self._service is not None:
            handle.nursery.start_soon(look_after, self.disk, self._service.lose)

    def lose_disk(self) -> None:
        """Replace the disk by an empty one. Only a dead broker may lose its disk."""
        self._world.trace.add("fault", self.host, "loses its disk")
        self.disk.lost_at = trio.current_time()
        self.disk.wipe(f"disk-of-{self.id}-since-{self._world.trace.length}")

    def mend_disk(self) -> None:
        """Make the disk work again, with its contents."""
        self._world.trace.add("fault", self.host, "disk works again")
        self.disk.mend()

    async def _serve(self, host: Host) -> None:
        world, settings = self._world, self._world.settings
        config = BrokerConfig(
            self.id,
            Path("/nowhere"),  # the disk is in memory
            host=self.host,
            port=self.port,
            rack=settings.rack(self.id),
            zookeeper_session_timeout_ms=round(settings.session_timeout * 1000),
            min_insync_replicas=settings.min_insync_replicas,
            replica_lag_time_max_ms=round(settings.replica_lag_time * 1000),
            replica_fetch_wait_max_ms=round(settings.fetch_wait * 1000),
            replica_socket_timeout_ms=round(settings.fetch_timeout * 1000),
            replica_fetch_max_bytes=settings.fetch_bytes,
            controller_socket_timeout_ms=round(settings.controller_timeout * 1000),
        )
        self.neglect.has_lost_orders = False
        make_service = settings.service or self._reference_service
        run = partial(run_broker, config, make_service, own_apis=settings.own_apis)
        async with (
            world.ensemble.session(self.host, settings.session_timeout) as store,
            trio.open_nursery() as nursery,
        ):
            network = RefusingNetwork(world.network.at(self.host), self.refusals)
            self.handle = await nursery.start(
                partial(run, store=store, network=network, host=host, storage_id=self.disk.storage_id)
            )
            self.started.set()


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
