"""The notification of the controller about lost replicas of a live broker (KIP-112)."""

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
    """Writes notifications below `/log_dir_event_notification`, after which the controller repeats its orders."""

    _store: MetadataStore
    _host: Host
    _broker_id: int
    _requests: ControllerRequests

    async def report(self, tps: Iterable[TopicPartition]) -> None:
        """Notify the controller, and forget the orders of the replicas, so that the next ones reach the service."""
        await self._requests.forget(tps)
        backoff = Backoff(jitter=self._host.rng.random)
        notification = Create(
            f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_",
            formats.encode_log_dir_event(self._broker_id),
            sequence=True,
        )
        while True:
            try:
                await self._store.multi([notification])
            except StoreError as error:
                # It may have been written; a second notification does no harm.
                _log.info("retrying the notification of lost replicas", broker_id=self._broker_id, reason=str(error))
                await trio.sleep(backoff.next())
            else:
                return
