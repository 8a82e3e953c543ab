"""Executes the actions of a plan on a simulated cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import trio
from attrs import frozen

from controller.admin_client import ClusterUnreachable
from controller.simulation.cluster import SimulatedCluster
from controller.simulation.network import Link
from controller.simulation.process import ProcessState
from controller.simulation.random_run.actions import (
    Action,
    Active,
    BreakConnections,
    Crash,
    CreateTopic,
    DeleteTopic,
    Depose,
    Disconnect,
    Elect,
    Expire,
    ExpireInCommit,
    Grow,
    Happening,
    Isolate,
    Lag,
    LeaderOf,
    Node,
    Pause,
    Reassign,
    Skew,
    SlowLink,
    SlowStore,
    Stop,
    Who,
)
from controller.simulation.random_run.coverage import Coverage
from controller.simulation.settings import host_of
from controller.simulation.steps import Step
from transport.errors import ApiError
from transport.metadata import NO_LEADER
from transport.wire import WireError

_MAY_BE_TOLD: tuple[type[Exception], ...] = (ApiError, ClusterUnreachable, WireError)
"""What an administrator may get for an answer."""


@frozen
class Execution:
    """Does what a plan says. What takes time goes on in `nursery`, which is cancelled when the faults end."""

    cluster: SimulatedCluster
    nursery: trio.Nursery
    coverage: Coverage
    began: float

    async def await_and_do(self, happening: Happening) -> None:
        """Do a happening when its time has come, or at its step."""
        await trio.sleep_until(self.began + happening.at)
        wanted = happening.step
        if wanted is None:
            self._do(happening.action, None)
            return

        def matches(step: Step) -> bool:
            return (step.round, step.moment) == (wanted.round, wanted.moment)

        def strike(step: Step) -> None:
            if self.nursery.cancel_scope.cancel_called:
                return
            if wanted.delay:
                self.nursery.start_soon(self._later, wanted.delay, partial(self._do, happening.action, step))
            else:
                self._do(happening.action, step)

        self.cluster.at(matches, strike)

    def _do(self, action: Action, step: Step | None) -> None:
        """Do an action now, within a controller's step if there is one."""
        match action:
            case CreateTopic() | DeleteTopic() | Grow() | Reassign() | Elect():
                self._administer(action)
            case Depose(pause=pause):
                self._depose(pause, step)
            case BreakConnections(a=a, b=b):
                self.cluster.break_connections(a, b)
            case Isolate(some=some, others=others, one_way=one_way, lasts=lasts):
                self.cluster.isolate(some, others, one_way=one_way)
                self._undo(lasts, self.cluster.heal)
            case SlowLink():
                self._slow(action)
            case Lag(server=server, seconds=seconds, lasts=lasts):
                self.cluster.trace.add("fault", f"zookeeper-{server}", f"lags {seconds:g} s behind")
                self.cluster.world.ensemble.set_lag(server, seconds)
                self._undo(lasts, partial(self.cluster.world.ensemble.set_lag, server, 0.0))
            case _:
                node = self._find(action.who, step)
                if node is not None:
                    self._disturb(node, action)

    def _administer(self, action: CreateTopic | DeleteTopic | Grow | Reassign | Elect) -> None:
        match action:
            case CreateTopic(name=name, assignment=assignment):
                self._ask(partial(self.cluster.create_topic, name, assignment))
            case DeleteTopic(name=name):
                self._ask(partial(self.cluster.delete_topic, name))
            case Grow(topic=name, partitions=count):
                self._ask(partial(self.cluster.add_partitions, name, count))
            case Reassign(targets=targets):
                self._ask(partial(self.cluster.reassign, dict(targets)))
            case Elect(kind=kind, partitions=names):
                self._ask(partial(self.cluster.elect_leaders, kind, names))

    def _find(self, who: Who, step: Step | None) -> int | None:
        match who:
            case Node(id=node_id):
                return node_id
            case Active():
                return self.cluster.active_controller if step is None else step.controller_id
            case LeaderOf(partition=name):
                state = self.cluster.partition(name)
                return None if state is None or state.leader == NO_LEADER else state.leader

    def _disturb(
        self, node: int, action: Stop | Crash | Pause | Expire | ExpireInCommit | Disconnect | SlowStore | Skew
    ) -> None:
        cluster = self.cluster
        if cluster.process(node).state is not ProcessState.RUNNING:
            return
        match action:
            case Stop() | Crash():
                self._end(node, action)
            case Pause(lasts=lasts):
                cluster.pause(node)
                self._undo(lasts, partial(cluster.wake, node))
            case Expire():
                cluster.expire(node)
            case ExpireInCommit(instant=instant):
                cluster.world.ensemble.on_next_multi(host_of(node), partial(self._expire, node), when=instant)
            case Disconnect(lasts=lasts, instant=None):
                cluster.disconnect(node)
                self._undo(lasts, partial(cluster.reconnect, node))
            case Disconnect(lasts=lasts, instant=instant):
                assert instant is not None
                cluster.world.ensemble.on_next_multi(
                    host_of(node), partial(self._disconnect, node, lasts), when=instant
                )
            case SlowStore(latency=latency, lasts=lasts):
                cluster.trace.add("fault", host_of(node), f"the store answers after {latency:g} s")
                cluster.world.ensemble.set_latency(host_of(node), latency)
                usual = cluster.world.settings.store_latency
                self._undo(lasts, partial(cluster.world.ensemble.set_latency, host_of(node), usual))
            case Skew(milliseconds=milliseconds):
                cluster.skew(node, milliseconds)

    def _end(self, node: int, action: Stop | Crash) -> None:
        if isinstance(action, Stop):
            self.nursery.start_soon(self._stop, node, action.lasts)
        else:
            self._crash(node, noticed=action.noticed)
            self.nursery.start_soon(self._restart, node, action.lasts, action.wipe)

    def _depose(self, pause: float, step: Step | None) -> None:
        if pause:
            node = self._find(Active(), step)
            if node is not None:
                self._disturb(node, Pause(Node(node), pause))
        self.cluster.depose()

    def _crash(self, node: int, *, noticed: bool) -> None:
        if node in self.cluster.controllers:
            self.coverage.controller_crashes(node)
        else:
            self.coverage.broker_crashes(node)
        self.cluster.crash(node)
        if noticed:
            self.cluster.expire(node)

    def _expire(self, node: int) -> None:
        self.coverage.count("session expiries with a commit in flight")
        self.cluster.expire(node)

    def _disconnect(self, node: int, lasts: float) -> None:
        self.coverage.count("disconnects with a commit in flight")
        self.cluster.disconnect(node)
        self._undo(lasts, partial(self.cluster.reconnect, node))

    def _slow(self, action: SlowLink) -> None:
        network = self.cluster.world.network
        source, destination = host_of(action.source), host_of(action.destination)
        self.cluster.trace.add("fault", f"{source}>{destination}", f"slow: {action.bytes_per_second:g} bytes/s")
        network.set_link(source, destination, Link(action.latency, 0.0, action.bytes_per_second))
        self._undo(action.lasts, partial(network.set_link, source, destination, network.default_link))

    async def _stop(self, node: int, lasts: float) -> None:
        self.coverage.count("brokers stopped")
        try:
            await self.cluster.stop(node)
        finally:
            # A broker that has asked to be relieved goes, also when the faults end before it was answered.
            self.cluster.crash(node)
        await self._restart(node, lasts, wipe=False)

    async def _restart(self, node: int, after: float, wipe: bool) -> None:  # noqa: FBT001  as start_soon passes it
        await trio.sleep(after)
        if self.cluster.process(node).state is ProcessState.DEAD:
            self.cluster.restart(node, wipe=wipe)

    def _ask(self, request: Callable[[], Awaitable[None]]) -> None:
        self.nursery.start_soon(self._ask_and_see, request)

    async def _ask_and_see(self, request: Callable[[], Awaitable[None]]) -> None:
        try:
            await request()
        except _MAY_BE_TOLD as refusal:
            self.coverage.count("requests refused")
            self.cluster.trace.add("admin", "admin", f"was told {type(refusal).__name__}: {refusal}")
        else:
            self.coverage.count("requests accepted")

    def _undo(self, after: float, undo: Callable[[], object]) -> None:
        self.nursery.start_soon(self._later, after, undo)

    async def _later(self, seconds: float, call: Callable[[], object]) -> None:
        await trio.sleep(seconds)
        call()
