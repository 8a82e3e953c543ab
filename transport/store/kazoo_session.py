"""A ZooKeeper session held by kazoo's client, seen from trio.

Kazoo connects, keeps the session alive and reconnects in a thread of its own. Replies, watches and changes of state
arrive in that thread, in the order in which the connection delivers them. They cross into trio by
`TrioToken.run_sync_soon`, which keeps the order. After the end of trio they are dropped.

This module uses five private parts of kazoo: `KazooClient._call`, to send any request, and `ConnectionHandler._submit`,
which writes it to the socket; `ConnectionHandler._read_watch_event`, to bypass kazoo's table of watchers, which needs
an entry for each path, cannot be filled safely from another thread, and is emptied on every disconnect; and
`ConnectionHandler._invoke` and `_authenticate_with_sasl`, which open the session and authenticate.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import trio
from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
    UnimplementedError,
    WriterNotClosedException,
)
from kazoo.protocol.serialization import Watch
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from transport.addresses import Address
from transport.log import get_logger
from transport.store.kazoo_handler import HANDSHAKE_SECONDS, KazooHandler, impatient, telling
from transport.store.listeners import Listeners
from transport.store.protocol import (
    ConnectionLost,
    SessionChanged,
    SessionExpired,
    SessionState,
    StoreError,
    StoreUnavailable,
    Unanswerable,
    WatchFired,
    WatchKind,
)
from transport.store.reachability import joined, told_now_and_then, until_reachable
from transport.store.sasl import authenticate
from transport.store.security import OPEN, ZooKeeperSecurity

MAX_IN_FLIGHT: Final = 64
"""The limit of requests in flight. Kazoo wakes its thread through a socket that blocks at about 270 wake-ups."""

RECONNECT_SECONDS: Final = 1.0
"""The longest pause between attempts to reconnect; kazoo's default grows to an hour."""

WRITING_SECONDS: Final = 0.005
"""The longest wait until a request is written to its socket, which takes a fraction of it."""

CLOSE_SECONDS: Final = 2.0
"""The longest wait for the server to confirm the close; without it the session ends at its timeout."""

_REFUSED_CREDENTIALS: Final = "refused our credentials: check zookeeper.credentials.file"

_WATCH_KINDS: Final = {1: WatchKind.CREATED, 2: WatchKind.DELETED, 3: WatchKind.CHANGED, 4: WatchKind.CHILDREN}

# Lost connections are reported as events, so kazoo's warnings about them are noise.
_LOGGER: Final = logging.getLogger("klamm.kazoo")
_LOGGER.setLevel(logging.ERROR)

_log = get_logger(__name__)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class KazooRequest(Protocol[T_co]):
    """A request that kazoo can send: the encoding of its body, and the decoding of its reply."""

    @property
    def type(self) -> int:
        """The opcode."""

    def serialize(self) -> bytes:
        """Encode the body."""

    def deserialize(self, buffer: bytes, offset: int) -> T_co | StoreError:
        """Decode the reply."""


class KazooReply(Generic[T]):
    """The reply to a request. Kazoo sets it in its thread, sometimes more than once."""

    def __init__(self, land: Callable[[KazooReply[T], T | StoreError], None]) -> None:
        self._land = land
        self._landed = trio.Event()
        self._outcome: T | StoreError

    def set(self, value: T | StoreError) -> None:
        """Accept the reply (in kazoo's thread)."""
        self._land(self, value)

    def set_exception(self, error: Exception) -> None:
        """Accept the failure (in kazoo's thread)."""
        self._land(self, _translate(error))

    def settle(self, outcome: T | StoreError) -> None:
        """Wake the waiting task (in trio's thread, once)."""
        self._outcome = outcome
        self._landed.set()

    async def wait(self) -> T:
        """Return the decoded reply, or raise the failure."""
        await self._landed.wait()
        if isinstance(self._outcome, StoreError):
            raise self._outcome
        return self._outcome


class KazooSession:
    """A session with ZooKeeper, from `connect` to `close`."""

    def __init__(self, servers: Sequence[Address], session_timeout_ms: int, security: ZooKeeperSecurity = OPEN) -> None:
        self._servers = servers
        self._tls = None if security.tls is None else security.tls.context()
        self.listeners = Listeners()
        self.state = SessionState.SUSPENDED
        self.session_id = 0
        self.connections = 0
        self._token = trio.lowlevel.current_trio_token()
        self._free = trio.Semaphore(MAX_IN_FLIGHT)
        self._under_way: dict[KazooReply[Any], None] = {}
        self._crossing: deque[Callable[[], object]] = deque()
        self._session_timeout = session_timeout_ms / 1000
        self._suspended = trio.CancelScope()
        self._client = KazooClient(
            joined(servers),
            timeout=self._session_timeout,
            connection_retry=KazooRetry(max_tries=-1, max_delay=RECONNECT_SECONDS),
            logger=_LOGGER,
            auth_data=[] if security.credentials is None or security.sasl else [("digest", security.credentials)],
            handler=KazooHandler(self._tls),
        )
        self._restarting = threading.Lock()
        self._is_refused = False
        self._written = threading.Event()
        self._client.add_listener(self._on_state)
        connection = self._client._connection  # noqa: SLF001
        connection._read_watch_event = self._on_watch  # noqa: SLF001
        connection._invoke = impatient(connection._invoke)  # noqa: SLF001
        connection._submit = telling(connection._submit, self._written)  # noqa: SLF001
        if security.credentials is not None and security.sasl:
            connection.sasl_options = {}
            sasl = partial(authenticate, connection, security.credentials)
            connection._authenticate_with_sasl = lambda *_: sasl(HANDSHAKE_SECONDS)  # noqa: SLF001

    async def send(self, request: KazooRequest[T]) -> KazooReply[T]:
        """Send a request after those sent before, and return without waiting for its reply.

        If it raises, nothing was sent.

        Raises:
            ConnectionLost: There is no connection.
            SessionExpired: There is no session.
            StoreUnavailable: There is no session, because our credentials were refused.
        """
        # Without another task's turn, so that whatever is done while the request is under way begins after it was sent.
        try:
            self._free.acquire_nowait()
        except trio.WouldBlock:
            await self._free.acquire()
        if self.state is not SessionState.CONNECTED:
            self._free.release()
            raise self._refusal()
        reply: KazooReply[T] = KazooReply(self._land)
        self._under_way[reply] = None
        self._written.clear()
        self._client._call(request, reply)  # noqa: SLF001
        # Kazoo's thread waits for the interpreter's lock: without this pause, it would only send when we wait.
        self._written.wait(WRITING_SECONDS)
        return reply

    async def connect(self, timeout: float, *, waits: bool = False) -> None:  # noqa: ASYNC109 - it raises StoreUnavailable
        """Open the session within `timeout` seconds; with `waits`, also wait that long for unreachable servers.

        Raises:
            StoreUnavailable: Every server refused the connection, or none opened a session in time.
        """
        connected = trio.Event()
        self.listeners.subscribe(lambda _: connected.set())
        doubt = "is it ZooKeeper that listens there?"
        if self._tls is not None:
            doubt = "does it trust the certificate in zookeeper.ssl.keystore.location?"
        reason = f"{joined(self._servers)} opened no session within {timeout:g} s: {doubt}"
        with trio.move_on_after(timeout) as scope:
            await until_reachable(self._servers, self._tls, scope.deadline if waits else -math.inf)
            self._client.start_async()
            if waits:
                await told_now_and_then(connected, f"{joined(self._servers)} has opened no session yet: {doubt}")
            await connected.wait()
            if self._is_refused:
                raise self._refusal()
            return
        raise StoreUnavailable(reason)

    async def close(self) -> None:
        """End the session and its ephemerals, within `CLOSE_SECONDS` and even when cancelled."""
        self._change(SessionState.CLOSED, self.session_id)
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await trio.to_thread.run_sync(self._stop, abandon_on_cancel=True)

    def _stop(self) -> None:
        with self._restarting:
            self._client.stop()
            self._client.close()

    def _restart(self) -> None:
        """Restart kazoo after it has given up. Blocks the thread."""
        with self._restarting:
            if self.state is not SessionState.CLOSED:
                self._client.start_async()

    # --- in kazoo's thread --------------------------------------------------------------------------------------

    def _cross(self, function: Callable[..., object], *args: object) -> None:
        """Call a function in trio's thread. Thousands of watches that fire together wake that thread once."""
        self._crossing.append(partial(function, *args))
        # Otherwise a call is on its way that takes this one along.
        if len(self._crossing) == 1:
            try:
                self._token.run_sync_soon(self._arrive)
            except trio.RunFinishedError:
                self._crossing.clear()

    def _land(self, reply: KazooReply[T], outcome: T | StoreError) -> None:
        self._cross(self._settle, reply, outcome)

    def _on_watch(self, buffer: bytes, offset: int) -> None:
        event, _ = Watch.deserialize(buffer, offset)
        kind = _WATCH_KINDS.get(event.type)
        if kind is not None:
            self._cross(self._fire, WatchFired(event.path, kind))

    def _on_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._cross(self._change, SessionState.CONNECTED, self._client.client_id[0])
        elif state == KazooState.SUSPENDED:
            self._cross(self._change, SessionState.SUSPENDED, self.session_id)
        elif self._client.client_state == KeeperState.EXPIRED_SESSION:
            self._cross(self._change, SessionState.EXPIRED, self.session_id)
        else:
            is_refused = self._client.client_state == KeeperState.AUTH_FAILED
            self._cross(self._be_abandoned, is_refused)

    # --- in trio's thread ---------------------------------------------------------------------------------------

    def _arrive(self) -> None:
        while self._crossing:
            self._crossing.popleft()()

    def _settle(self, reply: KazooReply[T], outcome: T | StoreError) -> None:
        if reply in self._under_way:
            del self._under_way[reply]
            reply.settle(outcome)
            self._free.release()

    def _fire(self, event: WatchFired) -> None:
        if self.state is not SessionState.CLOSED:
            self.listeners.notify(event)

    def _change(self, state: SessionState, session_id: int) -> None:
        if self.state in (state, SessionState.CLOSED):
            return
        self.state = state
        self._is_refused &= state is SessionState.EXPIRED
        self.session_id = session_id
        self.connections += state is SessionState.CONNECTED
        self._suspended.cancel()
        if state is SessionState.SUSPENDED:
            self._suspended = trio.CancelScope()
            trio.lowlevel.spawn_system_task(self._expire_unheard, self._suspended)
        if state is not SessionState.CONNECTED:
            self._give_up_requests(self._refusal())
        self.listeners.notify(SessionChanged(state))

    def _refusal(self) -> StoreError:
        if self._is_refused:
            return StoreUnavailable(f"ZooKeeper at {joined(self._servers)} {_REFUSED_CREDENTIALS}")
        if self.state is SessionState.SUSPENDED:
            return ConnectionLost("not connected to ZooKeeper")
        return SessionExpired(f"the session is {self.state.value}")

    def _give_up_requests(self, error: StoreError) -> None:
        """Fail the requests in flight; kazoo keeps those that it accepted without a connection for the next one."""
        for reply in list(self._under_way):
            self._settle(reply, error)

    def _be_abandoned(self, is_refused: bool) -> None:  # noqa: FBT001 - it crosses threads by position
        """Expire the session and restart kazoo, whose thread ended: our credentials were refused, or it failed.

        Kazoo has forgotten the session, so it has ended for us. It ends only now, not when authentication fails for the
        first time (KAFKA-13461).
        """
        if self.state is SessionState.CLOSED:
            return
        self._is_refused = is_refused
        reason = _REFUSED_CREDENTIALS if is_refused else "the client failed"
        _log.error("ZooKeeper session lost: opening a new one", servers=joined(self._servers), reason=reason)
        self._change(SessionState.EXPIRED, self.session_id)
        trio.lowlevel.spawn_system_task(self._try_again)

    async def _try_again(self) -> None:
        while self.state is not SessionState.CLOSED:
            await trio.sleep(RECONNECT_SECONDS)
            try:
                await trio.to_thread.run_sync(self._restart)
            except WriterNotClosedException as error:
                _log.warning("the ZooKeeper client is not ready to start again", reason=str(error))
            else:
                return

    async def _expire_unheard(self, suspended: trio.CancelScope) -> None:
        """Expire the session when it has been suspended for its timeout, as Curator does.

        The server reports the expiry only when it can be reached, and until then nobody here may rely on the session.
        """
        with suspended:
            await trio.sleep(self._session_timeout)
            _log.warning(
                "ZooKeeper was unreachable for the session timeout: this process treats the session as expired",
                servers=joined(self._servers),
                cure="it reconnects when a server is back",
            )
            # A server that is behind the last zxid that we saw, for example after losing its data, refuses clients.
            self._client.last_zxid = 0
            self._change(SessionState.EXPIRED, self.session_id)


def _translate(error: Exception) -> StoreError:
    if isinstance(error, ConnectionLoss | ConnectionClosedError):
        return ConnectionLost("the connection to ZooKeeper broke")
    if isinstance(error, SessionExpiredError):
        return SessionExpired("the session with ZooKeeper expired")
    if isinstance(error, NoNodeError | NoAuthError):
        return Unanswerable(f"ZooKeeper refused a request: {error!r}")
    if isinstance(error, UnimplementedError):
        return StoreUnavailable("this ZooKeeper is older than 3.6: upgrade its servers first, one at a time")
    return StoreError(f"ZooKeeper refused a request: {error!r}")
