"""The processes of a simulated cluster, controllers and others, that run, pause, die and restart.

A process that dies is first cut off from network and store, so that nothing that it does during its cancellation
affects the world. A paused process is frozen at its edges: its timers continue, but nothing comes in or goes out. A
suspended one runs none of its tasks, but the world takes its connections and sends it messages, which wait for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import Enum
from functools import partial
from typing import Final

import trio
from attrs import evolve, frozen
from trio.lowlevel import Task

from broker.reference.log_dirs import AllLogDirsFailed
from broker.registration import BrokerIdInUse
from controller.config import ControllerConfig
from controller.embedding import run as run_controller
from controller.node.service import ControllerService
from simulator.kafka.orders import LISTENER
from simulator.refusals import Refusal, Refusals, refusing
from simulator.scheduling import generator, wall_clock_ms
from simulator.settings import KAFKA_PORT, PORT, host_of
from simulator.steps import StepObserver
from simulator.suspension import resume, suspend
from simulator.world import World
from transport.host import Host
from transport.store.limits import RequestLimits
from transport.store.protocol import StoreUnavailable

LATEST_NEWS_SECONDS: Final = 0.05
"""The longest time until a process that was stopped learns what became of its session: its client runs in a thread."""

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
        self._is_stopped = False
        self._wakes = generator(world.seed, f"{self.host}/wakes")

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
        self._root, self._is_stopped = None, False
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
            self._see_what_was_missed()
            self.state = ProcessState.PAUSED
            self._world.network.freeze(self.host)
            self._world.ensemble.freeze(self.host, beats=keeps_session)

    def suspend(self, *, loses_session: bool = False) -> None:
        """Run no task, if running, until `wake`; with `loses_session`, no heartbeat reaches the store either."""
        if self.state is ProcessState.RUNNING and self._root is not None:
            self._world.trace.add("fault", self.host, "is suspended")
            self.state = ProcessState.PAUSED
            self._see_what_was_missed()
            self._is_stopped = loses_session
            self._world.ensemble.freeze(self.host, beats=not loses_session)
            suspend(self._root)

    def wake(self) -> None:
        """Resume after a pause, or where it was suspended."""
        if self.state is ProcessState.PAUSED:
            self._world.trace.add("fault", self.host, "wakes")
            self.state = ProcessState.RUNNING
            self._world.network.thaw(self.host)
            # Tasks may run before the client of the store has seen what it missed.
            late = self._wakes.uniform(0.0, LATEST_NEWS_SECONDS) if self._is_stopped else 0.0
            self._is_stopped = False
            self._world.ensemble.thaw(self.host, after=late)
            self._resume()

    def _see_what_was_missed(self) -> None:
        """Let the client of the store take what came while the process did not run, if it has not done so yet."""
        self._world.ensemble.thaw(self.host)

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
        rng = generator(self._world.seed, f"{self.host}/{incarnation}")
        signals = self._world.signals
        host = Host(
            lambda: wall_clock_ms(self.skew_ms),
            rng,
            give_back_memory=lambda: None,
            has_file=signals.has_file,
            page_fault=signals.page_fault,
        )
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
        config = _Config(
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
            kafka=settings.is_kafkas,
            inter_broker_listener_name=LISTENER,
            listeners=f"{LISTENER}://{self.host}:{KAFKA_PORT}" if settings.is_kafkas else None,
            chunk_operations=settings.chunk_operations,
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
                    network=refusing(world.network.at(self.host), self.refusals),
                    host=host,
                )
            )
            self.started.set()


@frozen
class _Config(ControllerConfig):
    """The configuration of a controller whose chunks may be smaller than others'."""

    chunk_operations: int = RequestLimits().operations

    @property
    def request_limits(self) -> RequestLimits:
        """The limits of what the controller writes to the store."""
        return evolve(super().request_limits, operations=self.chunk_operations)


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
