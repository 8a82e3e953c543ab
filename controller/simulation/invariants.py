"""What must hold at every moment of a simulation, checked as it happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from controller.simulation.durable import Durable
from controller.simulation.frames import ControlRequest
from controller.simulation.trace import Trace
from transport.messages import Record
from transport.metadata import TopicPartition
from transport.store.protocol import Committed, Op


@frozen
class Violation(Exception):
    """Something that must always hold did not."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


@define
class Safety:
    """Sees every commit, order, acknowledgement and change of a log, and reports the first violation."""

    trace: Trace
    on_violation: Callable[[], None]
    """Called at the first violation."""

    durable: Durable = field(init=False)
    """Set before the first commit."""

    violation: Violation | None = field(default=None, init=False)

    def report(self, invariant: str, text: str) -> None:
        """Take note of a violation; only the first counts."""
        if self.violation is None:
            self.violation = Violation(invariant, text)
            self.trace.add("violation", "", str(self.violation))
            self.on_violation()

    def committed(self, host: str, ops: Sequence[Op], committed: Committed) -> None:
        """Look at a commit of a host's session, or with `host` "" of the store itself, right after it took effect."""

    def ordered(self, controller_host: str, broker_id: int, request: ControlRequest) -> None:
        """Look at what a controller told a broker, as the broker takes it from the network."""

    def acknowledged(self, tp: TopicPartition, base_offset: int, values: Sequence[bytes]) -> None:
        """Take note that a producer was told, with acks=all, that records are committed."""

    def appended(
        self, broker_id: int, tp: TopicPartition, topic_id: str, base_offset: int, records: Sequence[Record]
    ) -> None:
        """Look at what a broker appended to a log."""

    def truncated(self, broker_id: int, tp: TopicPartition, topic_id: str, end_offset: int) -> None:
        """Look at where a broker cut a log off."""

    def deleted(self, broker_id: int, tp: TopicPartition, topic_id: str) -> None:
        """Look at a replica whose data a broker just deleted, as it was ordered to."""
