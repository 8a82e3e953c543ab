"""What measures and records a controller from inside: its log, its state-change log, its metrics.

Unlike an observer, which is an embedder's, an instrument sees the context itself. It must not change it, must neither
block nor raise, and is asked once per round and not once per partition: one that looks at nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from controller.channels.broker_channels import BrokerChannels
from controller.events import ControllerEvent
from controller.model.context import ControllerContext
from controller.model.facts import Fact
from controller.model.rounds import Step


@frozen
class Application:
    """The part of a round that the context is about to take: committed at `zxid`, or observed if that is None."""

    event_id: str
    event: str
    round: str
    zxid: int | None
    steps: Sequence[Step]

    def facts(self) -> Iterator[Fact]:
        """Yield the facts in the order in which they are applied."""
        for step in self.steps:
            yield from step.facts


class Instrument:
    """Override what you want to see."""

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:
        """See that the processing of an event begins."""

    def finished(self, event: ControllerEvent, seconds: float) -> None:
        """See that the processing of an event ended, in whatever way."""

    def took_office(self, context: ControllerContext, channels: BrokerChannels) -> None:
        """See a new controllership, before it loads anything."""

    def left_office(self) -> None:
        """See the end of a controllership."""

    def applying(self, context: ControllerContext, application: Application) -> None:
        """See `context` as it is before it takes what `application` says."""


@frozen
class Instruments(Instrument):
    """Several instruments as one."""

    instruments: tuple[Instrument, ...]

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:
        """Pass the beginning of an event on."""
        for instrument in self.instruments:
            instrument.started(event, queued_seconds)

    def finished(self, event: ControllerEvent, seconds: float) -> None:
        """Pass the end of an event on."""
        for instrument in self.instruments:
            instrument.finished(event, seconds)

    def took_office(self, context: ControllerContext, channels: BrokerChannels) -> None:
        """Pass a new controllership on."""
        for instrument in self.instruments:
            instrument.took_office(context, channels)

    def left_office(self) -> None:
        """Pass the end of a controllership on."""
        for instrument in self.instruments:
            instrument.left_office()

    def applying(self, context: ControllerContext, application: Application) -> None:
        """Pass an application on."""
        for instrument in self.instruments:
            instrument.applying(context, application)
