"""The delivery of leaders' proposals to the controller, many in one AlterPartition request."""

from __future__ import annotations

from collections.abc import Callable

import trio

from actors import Backoff
from broker.kit import BrokerHandle
from broker.reference.leadership import Settled
from broker.wakeup import Wakeup
from transport.errors import ApiError
from transport.log import get_logger
from transport.messages import AlterPartitionItem, AlterPartitionResult
from transport.metadata import TopicPartition

Settle = Callable[[AlterPartitionItem, AlterPartitionResult], Settled]

_log = get_logger(__name__)


class IsrUpdates:
    """Sends one AlterPartition request at a time; proposals made meanwhile go into the next one."""

    def __init__(self, handle: BrokerHandle, settle: Settle) -> None:
        """Pass every answer to `settle`, which returns whether the proposal must be sent again."""
        self._handle = handle
        self._settle = settle
        self._proposals: dict[TopicPartition, AlterPartitionItem] = {}
        self._wakeup = Wakeup()

    def submit(self, item: AlterPartitionItem) -> None:
        """Send a proposal with the next request; it replaces an older one of its partition."""
        self._proposals[item.tp] = item
        self._wakeup.set()

    async def run(self) -> None:
        """Send submitted proposals until cancelled."""
        backoff = Backoff(jitter=self._handle.host.rng.random)
        while True:
            await self._wakeup.wait()
            batch, self._proposals = self._proposals, {}
            unsettled = await self._send(batch)
            if not unsettled:
                backoff.reset()
                continue
            await trio.sleep(backoff.next())
            self._proposals = {**unsettled, **self._proposals}
            self._wakeup.set()

    async def _send(self, batch: dict[TopicPartition, AlterPartitionItem]) -> dict[TopicPartition, AlterPartitionItem]:
        """Send proposals, and return those whose outcome is still unknown."""
        try:
            results = await self._handle.link.alter_partition(list(batch.values()))
        except ApiError as error:
            _log.warning("AlterPartition was refused", broker_id=self._handle.broker_id, reason=str(error))
            return batch
        unsettled = dict(batch)
        for result in results:
            tp = result.tp
            item = unsettled.get(tp)
            if item is not None and self._settle(item, result) is Settled.DONE:
                del unsettled[tp]
        return unsettled
