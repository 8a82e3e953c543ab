"""What an embedder, a test or the commit trace can see of the controller: each event, and each step of its rounds."""

from __future__ import annotations

from attrs import frozen

from transport.messages import PartitionState
from transport.metadata import TopicPartition


@frozen
class DecidedRound:
    """What a round is to change has been decided: nothing is written, applied or told yet."""

    event: str
    round: str
    controller_epoch: int
    subjects: tuple[TopicPartition, ...]
    event_id: str = ""


@frozen
class CommittedRound:
    """A multi that took effect, or with `round` "loaded" what a new controller found of a partition that moves.

    `partitions` and `topic_versions` (name, dataVersion) are as they are after it.
    """

    event: str
    round: str
    controller_epoch: int
    zxid: int
    partitions: tuple[PartitionState, ...]
    topic_versions: tuple[tuple[str, int], ...]
    event_id: str = ""
    """Under which the log tells of the event."""


@frozen
class PublishedRound:
    """What a round had to tell brokers was handed to their channels."""

    event: str
    round: str
    controller_epoch: int
    subjects: tuple[TopicPartition, ...]
    event_id: str = ""


class Observer:
    """Override what you want to see.

    Called in the event-queue task, at the moment that the name says; must neither block nor raise.
    """

    def processing(self, event: str) -> None:
        """See that an event of that name is about to be processed."""

    def decided(self, decision: DecidedRound) -> None:
        """See a round before anything of it is committed."""

    def committed(self, commit: CommittedRound) -> None:
        """See a commit before it is published."""

    def published(self, publication: PublishedRound) -> None:
        """See that a round was published."""


@frozen
class Observers(Observer):
    """Several observers as one."""

    observers: tuple[Observer, ...]

    def processing(self, event: str) -> None:
        """Pass an event on."""
        for observer in self.observers:
            observer.processing(event)

    def decided(self, decision: DecidedRound) -> None:
        """Pass a decision on."""
        for observer in self.observers:
            observer.decided(decision)

    def committed(self, commit: CommittedRound) -> None:
        """Pass a commit on."""
        for observer in self.observers:
            observer.committed(commit)

    def published(self, publication: PublishedRound) -> None:
        """Pass a publication on."""
        for observer in self.observers:
            observer.published(publication)
