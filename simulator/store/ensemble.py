"""A ZooKeeper ensemble in memory on virtual time, whose sessions real nodes hold, with faults on command."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

from simulator.store.agenda import Agenda
from simulator.store.host import Interruption, Moment, StoreHost
from simulator.store.quorum import NOBODY, OnCommit, Quorum
from simulator.store.server import EnsembleServer
from simulator.store.session import OnLook, SimulatedStore
from transport.store.limits import DEFAULT_LIMITS
from transport.store.protocol import Committed, Op, StoreUnavailable
from transport.store.tree import Access, Tree

CONNECT_SECONDS: Final = 15.0
"""Seconds that a holder waits for its first session."""

BY_HAND: Final = "admin"
"""The host of commits made by hand."""


class SimulatedEnsemble:
    """Servers, numbered from 1, of which the first is the leader; and hosts, each with at most one session.

    Only the latencies of hosts and the lags of servers take time: where all are 0 and nothing fails, no time passes
    and `run` is not needed. Faults take effect before the call returns.
    """

    def __init__(
        self, rng: random.Random, clock_ms: Callable[[], int], *, servers: int = 1, on_commit: OnCommit
    ) -> None:
        self.default_latency = 0.0
        """Latency of hosts added later, in seconds each way; a message takes between 0.5 and 1.5 times that."""
        self.limits = DEFAULT_LIMITS
        """The limits of requests of sessions opened later."""
        self.on_look: OnLook | None = None
        """Called with each answer to a read, before its reader has it."""

        self._agenda = Agenda()
        self._rng = rng
        agenda = self._agenda
        self._quorum = Quorum([EnsembleServer(agenda) for _ in range(servers)], agenda, rng, clock_ms, on_commit)
        self._hosts: dict[str, StoreHost] = {}
        self._stores: dict[str, SimulatedStore] = {}
        self._closed: dict[str, None] = {}

    @property
    def tree(self) -> Tree:
        """The leader's tree: the durable state."""
        return self._quorum.tree

    async def run(self) -> None:
        """Let time pass for the ensemble, forever."""
        await self._agenda.run()

    @asynccontextmanager
    async def session(self, host: str, timeout: float, server: int | None = None) -> AsyncIterator[SimulatedStore]:  # noqa: ASYNC109
        """Hold a session for a process on `host`, in place of the session of its predecessor there.

        Args:
            host: the host of the process.
            timeout: the session timeout, in seconds.
            server: the number of the server to connect to first; any server if None.

        Raises:
            StoreUnavailable: no session was opened within `CONNECT_SECONDS`.
        """
        home = self._host(host)
        store = SimulatedStore(self._agenda, self._rng, self._quorum, home, timeout, on_look=self.on_look)
        store.limits = self.limits
        self._stores[host] = store
        try:
            store.connect(None if server is None else self._quorum.servers[server - 1])
            with trio.move_on_after(CONNECT_SECONDS):
                await store.opened.wait()
            if not store.opened.is_set():
                raise StoreUnavailable(f"ZooKeeper opened no session for {host} within {CONNECT_SECONDS:g} s")
            yield store
        finally:
            await store.close()
            if self._stores[host] is store:
                home.renew()

    # --- faults of a host ---------------------------------------------------------------------------------------

    def disconnect(self, host: str) -> None:
        """Cut a host off: its session is SUSPENDED until `reconnect`, and EXPIRED if that comes too late.

        Some of its messages in transit to the ensemble may still arrive.
        """
        self._host(host).reachable = False
        store = self._stores.get(host)
        if store is not None:
            self._cut_off(store, self._host(host))

    def reconnect(self, host: str) -> None:
        """Let a host reach the ensemble again: CONNECTED, preceded by EXPIRED if its session has ended."""
        self._host(host).reachable = True
        if host in self._stores:
            self._stores[host].try_again()

    def is_away(self, host: str) -> bool:
        """Return whether a host cannot reach the ensemble, or no host can."""
        return not (self._quorum.is_up and self._host(host).reachable)

    def expire(self, host: str) -> None:
        """End a host's session, as an operator would: its holder sees SUSPENDED, EXPIRED and CONNECTED.

        Does nothing without a quorum.
        """
        store = self._stores.get(host)
        if store is not None and store.session is not None and self._quorum.is_up:
            with self._agenda.together():
                self._quorum.end(store.session)

    def freeze(self, host: str, *, beats: bool = False) -> None:
        """Freeze a host's process: nothing arrives or leaves before `thaw`.

        Its session may expire, unless its heartbeat continues (`beats`).
        """
        self._host(host).freeze(beats=beats)
        self._quorum.listen(self._host(host))

    def thaw(self, host: str, *, after: float = 0.0) -> None:
        """Let a host's process continue, in `after` seconds unless something else happens to it until then."""
        home = self._host(host)
        if after:
            self._agenda.after(after, partial(self._thaw, home, home.changes))
            return
        with self._agenda.together():
            self._thaw(home, home.changes)

    def _thaw(self, home: StoreHost, changes: int) -> None:
        if home.changes == changes:
            home.thaw()
            self._quorum.listen(home)

    def cut(self, host: str) -> None:
        """Kill a host's process: it is notified of nothing, and nothing from it reaches the ensemble any more."""
        self._host(host).renew()
        if host in self._stores:
            self._stores[host].vanish()

    def set_latency(self, host: str, seconds: float) -> None:
        """Set the latency of each message from and to a host."""
        self._host(host).latency = seconds

    def on_next_multi(self, host: str, what: Callable[[], object], *, when: Moment, path: str = "") -> None:
        """Call `what` once, when the host's next multi arrives that changes `path` (if given) or a znode below it.

        The call comes before the multi is applied, or right after. If it breaks the connection before, the multi is not
        applied; if after, the answer is lost.
        """
        self._host(host).interruption = Interruption(what, when, path)

    def allow(self, path: str, access: Access) -> None:
        """Set the access that a znode's ACL gives to all sessions, at once on every server that has the znode."""
        if access is Access.ALL:
            self._closed.pop(path, None)
        else:
            self._closed[path] = None
        for server in self._quorum.servers:
            if server.tree.read(path) is not None:
                server.tree.allow(path, access)

    # --- faults of servers --------------------------------------------------------------------------------------

    def set_lag(self, server: int, seconds: float) -> None:
        """Make a follower apply each commit `seconds` later than the leader. Raises ValueError for the leader."""
        if server == 1:
            raise ValueError("server 1 is the leader and never lags")
        with self._agenda.together():
            self._quorum.servers[server - 1].lag = seconds

    def set_commit_seconds(self, seconds: float) -> None:
        """Let each commit that a client requests from now on take so many seconds longer."""
        self._quorum.commit_seconds = seconds

    def lose_quorum(self) -> None:
        """Break all connections, and accept none until `regain_quorum`, as while a leader is elected.

        Some requests in transit are lost; all commits so far are kept. No session ends meanwhile.
        """
        with self._agenda.together():
            self._quorum.fall()
            for name, store in self._stores.items():
                self._cut_off(store, self._host(name))

    def regain_quorum(self) -> None:
        """Accept connections again. Sessions have their whole timeout to return."""
        if not self._quorum.is_up:
            with self._agenda.together():
                self._quorum.rise()
                for store in self._stores.values():
                    store.try_again()

    def mend(self) -> None:
        """End all faults except pauses: all is reachable with the default latency, and no follower lags."""
        self.set_commit_seconds(0.0)
        self.regain_quorum()
        for name, host in self._hosts.items():
            host.latency = self.default_latency
            host.interruption = None
            if not host.reachable:
                self.reconnect(name)
        for number in range(2, len(self._quorum.servers) + 1):
            self.set_lag(number, 0.0)
        for path in list(self._closed):
            self.allow(path, Access.ALL)

    def commit_by_hand(self, ops: Sequence[Op]) -> Committed:
        """Apply all of `ops` or nothing, as an operator at the leader would. Raises Conflict."""
        with self._agenda.together():
            return self._quorum.commit(BY_HAND, NOBODY, ops)

    def _cut_off(self, store: SimulatedStore, host: StoreHost) -> None:
        if store.connection is not None:
            self._quorum.drop(store.connection)
            self._agenda.after(0, partial(host.take, partial(store.lost, store.connection)))

    def _host(self, name: str) -> StoreHost:
        if name not in self._hosts:
            self._hosts[name] = StoreHost(name, self.default_latency)
        return self._hosts[name]
