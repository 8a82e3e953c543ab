"""The controlled shutdown of a broker: the controller first moves leadership away and stops replicas (KIP-49)."""

from __future__ import annotations

import trio
from attrs import frozen

from broker.config import BrokerConfig
from broker.controller_link import ControllerLink, NotAnswered
from transport.errors import ApiError
from transport.log import get_logger
from transport.metadata import TopicPartition

_log = get_logger(__name__)


@frozen
class ShutdownOutcome:
    """The outcome of a controlled shutdown. The broker may stop in any case."""

    remaining: tuple[TopicPartition, ...] = ()
    """The partitions that the broker still leads: they have other replicas, but none that is alive and in sync."""

    failure: str = ""
    """The reason why the controller did not answer, or "" if it did."""

    @property
    def is_relieved(self) -> bool:
        """Whether no partition with other replicas loses its leader when the broker stops."""
        return not self.remaining and not self.failure


async def be_relieved(config: BrokerConfig, link: ControllerLink) -> ShutdownOutcome:
    """Ask the controller until the broker leads nothing that others could lead, or its attempts are used up.

    Each attempt may take the timeout of a request and a back-off. Run this while the broker still serves.
    """
    if not config.controlled_shutdown_enable:
        return ShutdownOutcome()
    outcome = ShutdownOutcome(failure="it was not asked")
    for attempt in range(config.controlled_shutdown_max_retries):
        if attempt:
            await trio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
        outcome = await _ask(link)
        if outcome.is_relieved:
            break
        _log.info(
            "controlled shutdown is not complete",
            broker_id=config.broker_id,
            leads=list(map(str, outcome.remaining)),
            failure=outcome.failure,
        )
    return outcome


async def _ask(link: ControllerLink) -> ShutdownOutcome:
    try:
        return ShutdownOutcome(await link.controlled_shutdown())
    except (ApiError, NotAnswered) as error:
        return ShutdownOutcome(failure=str(error))
