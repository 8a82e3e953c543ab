"""The observer interface for embedders, tests and the commit trace: each event, and each stage of its rounds."""

from __future__ import annotations

from attrs import frozen

from transport.messages import PartitionState
from transport.metadata import TopicPartition


@frozen
class DecidedRound:
    """A round that has been decided: nothing is written, applied or published yet."""

    event: str
    round: str
    controller_epoch: int
    subjects: tuple[TopicPartition, ...]
    event_id: str = ""


@frozen
class CommittedRound:
    """A committed multi, or with `round` "loaded" the state in which a new controller found a moving partition.

    `partitions` and `topic_versions` (name, dataVersion) are the values after it.
    """

    event: str
    round: str
    controller_epoch: int
    zxid: int
    partitions: tuple[PartitionState, ...]
    topic_versions: tuple[tuple[str, int], ...]
    event_id: str = ""
    """The id of the event in the log."""


@frozen
class PublishedRound:
    """A round whose publications have been passed to the brokers' channels."""

    event: str
    round: str
    controller_epoch: int
    subjects: tuple[TopicPartition, ...]
    event_id: str = ""


class Observer:
    """The base class of observers: override the methods of interest.

    They are called in the event-queue task and must neither block nor raise.
    """

    def processing(self, event: str) -> None:
        """Observe that an event of this name is about to be processed."""

    def decided(self, decision: DecidedRound) -> None:
        """Observe a round before anything of it is committed."""

    def committed(self, commit: CommittedRound) -> None:
        """Observe a commit before it is published."""

    def published(self, publication: PublishedRound) -> None:
        """Observe a round after it has been published."""


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
