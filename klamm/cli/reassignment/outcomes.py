"""The outcome for each partition, in the same words for every command."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import frozen
from msgspec import Struct

from controller.admin.moves import MoveStatus, waits_for
from klamm.cli.formats import Note, View
from transport.messages import ReassignmentDescription
from transport.metadata import TopicPartition


class MoveOutcome(Enum):
    """The outcome of a request to move a partition, or to cancel its move."""

    BEGUN = "begun"
    COMPLETE = "complete"
    IN_PROGRESS = "in_progress"
    CANCELLED = "cancelled"
    NOT_AS_ASKED = "not_as_asked"
    NOT_BEGUN = "not_begun"
    REFUSED = "refused"
    CHECKED = "checked"
    """A dry run has found that it is possible."""


class OutcomeRow(Struct):
    """The outcome for a partition, the replicas that it has or will have, and the details in words."""

    topic: str
    partition: int
    outcome: MoveOutcome
    replicas: tuple[int, ...]
    message: str


@frozen
class PartitionOutcome:
    """The outcome for a partition, the replicas that it has or will have, and a text with the details."""

    tp: TopicPartition
    outcome: MoveOutcome
    replicas: tuple[int, ...]
    text: str

    @property
    def line(self) -> str:
        """The line that is printed."""
        return f"{self.tp}: {self.text}"

    @property
    def row(self) -> OutcomeRow:
        """Its part of the document."""
        return OutcomeRow(*self.tp, self.outcome, self.replicas, self.text)


def judge(status: MoveStatus) -> list[PartitionOutcome]:
    """Return for each target whether it was reached."""
    ongoing = {move.tp: move for move in status.ongoing}
    return [_judge(tp, target, ongoing.get(tp), status) for tp, target in status.targets.items()]


def _judge(
    tp: TopicPartition, target: tuple[int, ...], move: ReassignmentDescription | None, status: MoveStatus
) -> PartitionOutcome:
    if move is not None and move.new_replicas != target:
        text = f"is being moved to {list(move.new_replicas)}, not to {list(target)}"
        return PartitionOutcome(tp, MoveOutcome.NOT_AS_ASKED, move.new_replicas, text)
    if move is not None or tp not in status.ended:
        wait = "" if move is None else f", waits for {waits_for(move)}"
        return PartitionOutcome(tp, MoveOutcome.IN_PROGRESS, target, f"in progress{wait}")
    replicas = status.ended[tp]
    if replicas == target:
        return PartitionOutcome(tp, MoveOutcome.COMPLETE, replicas, "complete")
    text = f"has replicas {list(replicas)}, not {list(target)}" if replicas else "there is no such partition"
    return PartitionOutcome(tp, MoveOutcome.NOT_AS_ASKED, replicas, text)


def view(outcomes: Iterable[PartitionOutcome], *good: MoveOutcome, code: int = 0) -> View:
    """Return outcomes as a document and as lines; lines with an outcome that is not `good` go to stderr."""
    outcomes = tuple(outcomes)
    lines = [item.line if item.outcome in good else Note(item.line) for item in outcomes]
    return View([item.row for item in outcomes], lines, code)
