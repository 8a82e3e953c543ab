"""Takes the leaders' proposals to the controller, many in one AlterPartition, and brings back the answers."""

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
    """One AlterPartition is under way at a time; what is proposed meanwhile goes into the next."""

    def __init__(self, handle: BrokerHandle, settle: Settle) -> None:
        """Hand every answer to `settle`, which says whether the proposal must be sent again."""
        self._handle = handle
        self._settle = settle
        self._proposals: dict[TopicPartition, AlterPartitionItem] = {}
        self._wakeup = Wakeup()

    def submit(self, item: AlterPartitionItem) -> None:
        """Send a proposal with the next request, instead of an older one of its partition."""
        self._proposals[item.tp] = item
        self._wakeup.set()

    async def run(self) -> None:
        """Send what is submitted, until cancelled."""
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
        """Return the proposals whose outcome is still not known."""
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
