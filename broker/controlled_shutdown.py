"""How a broker leaves in good order: the controller relieves it of what it leads and follows first (KIP-49)."""

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
    """What came of a controlled shutdown; the broker may stop in any case."""

    remaining: tuple[TopicPartition, ...] = ()
    """What the broker still leads though there are other replicas: no other member of the ISR is alive."""

    failure: str = ""
    """Why the controller did not answer, if it did not."""

    @property
    def is_relieved(self) -> bool:
        """Whether nothing that others hold too loses its leader when the broker stops."""
        return not self.remaining and not self.failure


async def be_relieved(config: BrokerConfig, link: ControllerLink) -> ShutdownOutcome:
    """Ask until the broker leads nothing that others could lead, as often as its settings say.

    Takes up to the retries' back-off and as many requests' time-outs; to be run while the broker still serves.
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
        _log.info("not relieved", broker_id=config.broker_id, leads=_text(outcome.remaining), failure=outcome.failure)
    return outcome


async def _ask(link: ControllerLink) -> ShutdownOutcome:
    try:
        return ShutdownOutcome(await link.controlled_shutdown())
    except (ApiError, NotAnswered) as error:
        return ShutdownOutcome(failure=str(error))


def _text(tps: tuple[TopicPartition, ...]) -> list[str]:
    return list(map(str, tps))
