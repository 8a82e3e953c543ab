"""Instruments, which measure and record a controller from inside: its log, its state-change log, its metrics.

Unlike an observer, which belongs to an embedder, an instrument sees the context itself. It must not change the context,
and must neither block nor raise. It is called once per round, not per partition, so an idle instrument is almost free.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from controller.channels.broker_channels import BrokerChannels
from controller.events import ControllerEvent
from controller.model.batches import Batch
from controller.model.context import ControllerContext
from controller.model.facts import Fact
from controller.observation.observer import fan_out


@frozen
class Application:
    """The part of a round about to be applied to the context: committed at `zxid`, or not written if that is None."""

    event_id: str
    event: str
    round: str
    zxid: int | None
    steps: Batch
    facts: Sequence[Fact]
    """In the order in which they are applied; some are about many partitions."""


class Instrument:
    """The base class of instruments: override the methods of interest."""

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:
        """Observe the start of an event's processing, after `queued_seconds` in the queue."""

    def finished(self, event: ControllerEvent, seconds: float) -> None:
        """Observe the end of an event's processing, successful or not, after `seconds`."""

    def took_office(self, context: ControllerContext, channels: BrokerChannels) -> None:
        """Observe the start of a controllership, before it loads anything."""

    def left_office(self) -> None:
        """Observe the end of a controllership."""

    def applying(self, context: ControllerContext, application: Application) -> None:
        """Observe `context` before `application` is applied to it."""


class Instruments(Instrument):
    """Several instruments as one."""

    def __init__(self, instruments: Sequence[Instrument]) -> None:
        fan_out(self, Instrument, instruments)
