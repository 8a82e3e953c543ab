"""Calls the controller when replicas of a live broker cannot be used any more (KIP-112)."""

from __future__ import annotations

from collections.abc import Iterable

import trio
from attrs import frozen

from actors import Backoff
from broker.controller_requests import ControllerRequests
from transport.host import Host
from transport.log import get_logger
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore, StoreError

_log = get_logger(__name__)


@frozen(eq=False)
class LostReplicas:
    """Writes below `/log_dir_event_notification`; the controller then repeats its orders to this broker."""

    _store: MetadataStore
    _host: Host
    _broker_id: int
    _requests: ControllerRequests

    async def report(self, tps: Iterable[TopicPartition]) -> None:
        """Forget which orders the replicas obey, so that the next ones reach the service, and call the controller."""
        await self._requests.forget(tps)
        backoff = Backoff(jitter=self._host.rng.random)
        call = Create(
            f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_",
            formats.encode_log_dir_event(self._broker_id),
            sequence=True,
        )
        while True:
            try:
                await self._store.multi([call])
            except StoreError as error:  # two calls are as good as one
                _log.info("the controller is called again", broker_id=self._broker_id, reason=str(error))
                await trio.sleep(backoff.next())
            else:
                return
