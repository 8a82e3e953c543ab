"""What an embedder, a test or the commit trace can see of the controller: each commit and each publish, by round."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen

from transport.messages import PartitionState
from transport.metadata import TopicPartition


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


@frozen
class PublishedRound:
    """What a round had to tell brokers was handed to their channels."""

    event: str
    round: str
    controller_epoch: int
    subjects: tuple[TopicPartition, ...]


class Observer(Protocol):
    """Called in the event-queue task, between commit and publish and after it; must not block."""

    def committed(self, commit: CommittedRound) -> None:
        """See a commit before it is published."""

    def published(self, publication: PublishedRound) -> None:
        """See that a round was published."""


@frozen
class Observers:
    """Several observers as one."""

    observers: tuple[Observer, ...]

    def committed(self, commit: CommittedRound) -> None:
        """Pass a commit on."""
        for observer in self.observers:
            observer.committed(commit)

    def published(self, publication: PublishedRound) -> None:
        """Pass a publication on."""
        for observer in self.observers:
            observer.published(publication)
