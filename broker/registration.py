"""A broker's registration: the ephemeral `/brokers/ids/N`, whose czxid is the broker epoch."""

from __future__ import annotations

from typing import Final

import trio

from actors import Backoff
from broker.config import BrokerConfig
from broker.wakeup import Wakeup
from transport.host import Host
from transport.log import get_logger
from transport.metadata import NO_EPOCH, BrokerRegistration
from transport.store import formats, paths
from transport.store.protocol import (
    Conflict,
    ConflictReason,
    Create,
    MetadataStore,
    SessionChanged,
    SessionState,
    Set,
    StoreError,
    StoreEvent,
    Znode,
)

EXPIRY_SLACK: Final = 1.5
"""The factor by which an old registration may outlive its session timeout: ZooKeeper expires sessions at its ticks."""

_log = get_logger(__name__)


class BrokerIdInUse(Exception):
    """A live controller has this broker's id, or another live session holds its registration."""


class Registration:
    """Registers a broker in the store, and again after each loss of the session.

    As in Kafka, a multi creates the znode and sets it at version 0, so that its version is 1 from the start.
    """

    def __init__(self, store: MetadataStore, host: Host, config: BrokerConfig, storage_id: str) -> None:
        self.broker_id = config.broker_id
        self._store = store
        self._host = host
        self._config = config
        self._storage_id = storage_id
        self._path = paths.broker(config.broker_id)
        self._news = Wakeup()
        self._port = 0
        self._epoch = NO_EPOCH
        self._registered = trio.Event()
        self._announced: tuple[int, int] | None = None
        """The session and the port of the latest registration."""

        self.is_under_way = False
        """Whether a registration may be in the store whose epoch is not known here yet."""

    @property
    def epoch(self) -> int:
        """The broker epoch of the latest registration; -1 before the first."""
        return self._epoch

    async def until_registered(self) -> None:
        """Wait for the first registration."""
        await self._registered.wait()

    async def register(self, port: int) -> None:
        """Register the broker, which listens on `port`.

        Waits while another session holds the id: that of a dead predecessor expires within the session timeout. After
        that it raises BrokerIdInUse. Store failures are retried until cancelled.
        """
        self._port = port
        unsubscribe = self._store.subscribe(self._on_store_event)
        try:
            await self._register()
        finally:
            unsubscribe()

    def move(self, port: int) -> None:
        """Announce another port, in this registration and in later ones. It takes effect while `keep` runs."""
        self._port = port
        self._news.set()

    async def keep(self) -> None:
        """Register in each new session of the store and after each move, until cancelled. Raises BrokerIdInUse."""
        unsubscribe = self._store.subscribe(self._on_store_event)
        try:
            while True:
                is_announced = self._announced == (self._store.session_id, self._port)
                if self._store.state is SessionState.CONNECTED and not is_announced:
                    await self._register()
                await self._news.wait()
        finally:
            unsubscribe()

    def encode(self, registration: BrokerRegistration, now_ms: int) -> bytes:
        """Return the contents of the znode."""
        return formats.encode_broker(registration, now_ms)

    def decode(self, data: bytes, czxid: int) -> BrokerRegistration:
        """Return the registration in the contents of a znode. Raises UndecodableZnode."""
        return formats.decode_broker(self.broker_id, data, czxid)

    def _on_store_event(self, event: StoreEvent) -> None:
        if isinstance(event, SessionChanged) or event.path == self._path:
            self._news.set()

    async def _register(self) -> None:
        patience = EXPIRY_SLACK * self._config.zookeeper_session_timeout_ms / 1000
        deadline = trio.current_time() + patience
        has_told = False
        self.is_under_way = True
        backoff = Backoff(jitter=self._host.rng.random)
        while True:
            try:
                holder = await self._try_once()
            except StoreError as error:
                _log.info("retrying the registration", broker_id=self.broker_id, reason=str(error))
                await trio.sleep(backoff.next())
                continue
            if holder is None:
                self.is_under_way = False
                _log.info("registered", broker_id=self.broker_id, port=self._port, broker_epoch=self._epoch)
                return
            if not has_told:
                has_told = True
                _log.warning(
                    "another session holds this broker id: waiting for it to end, as that of a dead broker does",
                    broker_id=self.broker_id, registered=self._where(holder), at_most_seconds=patience,
                )  # fmt: skip
            with trio.move_on_at(deadline) as waiting:
                await self._news.wait()
            if waiting.cancelled_caught:
                raise BrokerIdInUse(self._in_use(holder))

    async def _try_once(self) -> Znode | None:
        """Return None when registered, else the registration of another session, whose end is being watched."""
        session_id, port = self._store.session_id, self._port
        registration = self._described(port)
        data = self.encode(registration, self._host.now_ms())
        try:
            committed = await self._store.multi([Create(self._path, ephemeral=True), Set(self._path, data, 0)])
        except Conflict as conflict:
            if conflict.reason is not ConflictReason.NODE_EXISTS:
                raise
            [found] = await self._store.read([self._path], watch=True)
            # It disappeared between the two requests.
            if found is None:
                return await self._try_once()
            if found.stat.ephemeral_owner != session_id:
                return found
            # It is ours: the port has changed, or an earlier attempt took effect, but its answer was lost.
            if self._endpoint(found) != (registration.host, registration.port):
                await self._store.multi([Set(self._path, data, found.stat.version)])
            self._epoch = found.stat.czxid
        else:
            self._epoch = committed.zxid
        self._announced = session_id, port
        self._registered.set()
        return None

    def _described(self, port: int) -> BrokerRegistration:
        config = self._config
        told = config.advertised(config.host, port)
        return BrokerRegistration(config.broker_id, *told, NO_EPOCH, config.rack, self._storage_id)

    def _in_use(self, holder: Znode) -> str:
        where = self._where(holder)
        return f"broker id {self.broker_id} is already live {where}: stop that one or choose another id"

    def _where(self, holder: Znode) -> str:
        endpoint = self._endpoint(holder)
        return "as a broker of another kind" if endpoint is None else f"at {endpoint[0]}:{endpoint[1]}"

    def _endpoint(self, holder: Znode) -> tuple[str, int] | None:
        try:
            other = self.decode(holder.data, holder.stat.czxid)
        except formats.UndecodableZnode:
            return None
        return other.host, other.port
