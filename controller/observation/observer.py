"""The observer interface for embedders, tests and the commit trace: each event, and each stage of its rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from transport.messages import PartitionState
from transport.metadata import TopicPartition


@frozen
class _Round:
    event: str
    round: str
    controller_epoch: int
    subjects: tuple[TopicPartition, ...]
    event_id: str = ""


@frozen
class DecidedRound(_Round):
    """A round that has been decided: nothing is written, applied or published yet."""


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
class PublishedRound(_Round):
    """A round whose publications have been passed to the brokers' channels."""


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


class Observers(Observer):
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        fan_out(self, Observer, observers)


def fan_out(receiver: object, interface: type, members: Sequence[object]) -> None:
    """Let each method of `interface` on `receiver` call that of every member, in order."""

    def calling(methods: Sequence[Callable[..., None]]) -> Callable[..., None]:
        def call(*args: object) -> None:
            for method in methods:
                method(*args)

        return call

    for name in vars(interface):
        if not name.startswith("_"):
            setattr(receiver, name, calling([getattr(member, name) for member in members]))
