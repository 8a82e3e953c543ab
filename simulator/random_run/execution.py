"""Executes the actions of a plan on a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio
from attrs import frozen

from simulator import administration
from simulator.cluster import SimulatedCluster
from simulator.network.network import Link
from simulator.process import BrokerProcess, ProcessState
from simulator.random_run import late_cancels
from simulator.random_run.actions import (
    Action,
    Active,
    BreakConnections,
    CancelAfterFailover,
    Crash,
    Depose,
    Disconnect,
    Expire,
    ExpireInCommit,
    FailLogDir,
    Happening,
    Isolate,
    Lag,
    LeaderOf,
    Node,
    Notification,
    NotifyIsrChange,
    NotifyLogDir,
    Pause,
    Request,
    Skew,
    SlowLink,
    SlowStore,
    Stop,
    Who,
)
from simulator.random_run.administrator import Administrator
from simulator.random_run.coverage import Coverage
from simulator.settings import host_of
from simulator.steps import Step
from transport.metadata import NO_LEADER


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
        if isinstance(action, Request):
            self.nursery.start_soon(Administrator(self.cluster, self.coverage).do, action)
            return
        match action:
            case NotifyIsrChange() | NotifyLogDir():
                self._notify(action)
            case Depose(pause=pause):
                self._depose(pause, step)
            case CancelAfterFailover():
                self._cancel_after_failover(action, step)
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

    def _notify(self, notification: Notification) -> None:
        self.coverage.count("notifications by hand")
        match notification:
            case NotifyIsrChange(partitions=names):
                administration.notify_isr_change(self.cluster, names)
            case NotifyLogDir(broker=broker_id):
                administration.notify_log_dir(self.cluster, broker_id)

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
        self,
        node: int,
        action: Crash | Stop | FailLogDir | Pause | Expire | ExpireInCommit | Disconnect | SlowStore | Skew,
    ) -> None:
        cluster = self.cluster
        if cluster.process(node).state is not ProcessState.RUNNING:
            return
        match action:
            case Crash(lasts=lasts, wipe=wipe, noticed=noticed, moves=moves):
                self._crash(node, noticed=noticed)
                self.nursery.start_soon(self._restart, node, lasts, wipe, moves)
            case Stop(lasts=lasts, moves=moves):
                self.nursery.start_soon(self._stop, node, lasts, moves)
            case FailLogDir(directory=directory, lasts=lasts):
                self._fail_log_dir(node, directory, lasts)
            case Pause(lasts=lasts):
                cluster.pause(node)
                self._undo(lasts, partial(cluster.wake, node))
            case Skew(milliseconds=milliseconds):
                cluster.skew(node, milliseconds)
            case _:
                self._disturb_session(node, action)

    def _disturb_session(self, node: int, action: Expire | ExpireInCommit | Disconnect | SlowStore) -> None:
        cluster = self.cluster
        match action:
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

    def _depose(self, pause: float, step: Step | None) -> None:
        if pause:
            node = self._find(Active(), step)
            if node is not None:
                self._disturb(node, Pause(Node(node), pause))
        self.cluster.depose()

    def _cancel_after_failover(self, action: CancelAfterFailover, step: Step | None) -> None:
        assert step is not None, "it is drawn for a step"
        tps = late_cancels.unfinished(self.cluster.durable, step.subjects)
        self._disturb(step.controller_id, Crash(Node(step.controller_id), action.lasts, noticed=True))
        if tps and action.by_hand:
            late_cancels.cancel_by_hand(self.cluster, self.coverage, tps)
        elif tps:
            assigned = [self.cluster.durable.assignment(tp) for tp in tps]
            targets = dict.fromkeys(r for assignment in assigned if assignment for r in assignment.target_replicas)
            for broker_id in targets:
                self._disturb(broker_id, Crash(Node(broker_id), action.lasts, noticed=True))
            self.nursery.start_soon(
                late_cancels.cancel_through_the_next, self.cluster, self.coverage, step.controller_id, tps
            )

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

    async def _restart(self, node: int, after: float, wipe: bool, moves: bool) -> None:  # noqa: FBT001  as start_soon passes them
        await trio.sleep(after)
        if self.cluster.process(node).state is not ProcessState.DEAD:
            return
        broker = self.cluster.brokers.get(node)
        if moves and broker is not None:
            self.coverage.count("brokers that moved to another port")
            broker.move()
        self.cluster.restart(node, wipe=wipe)

    async def _stop(self, node: int, lasts: float, moves: bool) -> None:  # noqa: FBT001
        self.coverage.count("processes stopped")
        try:
            await self.cluster.stop(node)
        finally:
            # A broker that has asked to be relieved goes, also when the faults end before it was answered.
            self.cluster.crash(node)
        await self._restart(node, lasts, wipe=False, moves=moves)

    def _fail_log_dir(self, node: int, directory: int | None, lasts: float) -> None:
        broker = self.cluster.brokers.get(node)
        if broker is not None and not broker.disk.has_failed:
            self.coverage.count("log directories failed")
            broker.fail_log_dir(directory)
            self._undo(lasts, partial(self._mend_log_dirs, broker))

    def _mend_log_dirs(self, broker: BrokerProcess) -> None:
        broker.mend_disk()
        self.cluster.restart(broker.id)

    def _undo(self, after: float, undo: Callable[[], object]) -> None:
        self.nursery.start_soon(self._later, after, undo)

    async def _later(self, seconds: float, call: Callable[[], object]) -> None:
        await trio.sleep(seconds)
        call()
