"""The events of the controller's queue. They carry no data of the store: they name what to look at (KAFKA-5879).

An event that re-reads the store has a key, under which it waits in the queue at most once. A request has a `Reply`,
which gets exactly one answer: NOT_CONTROLLER when it is dropped, REQUEST_TIMED_OUT when the office is lost while it is
processed, because nobody knows how much of it was done.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import trio
from attrs import define, field, frozen

from transport.errors import ApiError, ErrorCode
from transport.messages import LeaderAndIsrRequest, LeaderAndIsrResponse, Request
from transport.metadata import Stray, TopicPartition

R = TypeVar("R")


def not_controller() -> ApiError:
    """Return the answer of a node that is not, or no longer, the active controller."""
    return ApiError(ErrorCode.NOT_CONTROLLER, "this is not the active controller: ask the cluster who is")


def cut_off() -> ApiError:
    """Return the answer to a request in the middle of which the controller lost its office."""
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, "the controller lost its office before the request was done")


@define(eq=False)
class Reply(Generic[R]):
    """The one answer to a request: the first that is set counts."""

    _done: trio.Event = field(factory=trio.Event, init=False)
    _answer: R | ApiError | None = field(default=None, init=False)

    def set(self, answer: R | ApiError) -> None:
        """Answer, unless an answer was given."""
        if not self._done.is_set():
            self._answer = answer
            self._done.set()

    async def wait(self) -> R:
        """Return the answer. Raises ApiError if that is the answer."""
        await self._done.wait()
        if isinstance(self._answer, ApiError):
            raise self._answer
        assert self._answer is not None, "an answer is set before the event"
        return self._answer


@define(eq=False)
class Outcomes:
    """Which replicas an incarnation of a broker could use when it was told to lead or follow them.

    The latest answer for each is kept until the event queue takes it. The first failure makes successes news, which
    they are not before.
    """

    _latest: dict[tuple[str, TopicPartition], bool] = field(factory=dict, init=False)
    _has_failed: bool = field(default=False, init=False)

    def gather(self, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> bool:
        """Add an answer; return whether it brings news. Errors other than KAFKA_STORAGE_ERROR say nothing of a log."""
        topic_ids = {item.state.tp: item.state.topic_id for item in request.partitions}
        errors = {item.error for item in response.partitions}
        self._has_failed = self._has_failed or ErrorCode.KAFKA_STORAGE_ERROR in errors
        if not self._has_failed or errors.isdisjoint(_LOG_VERDICTS):
            return False
        for item in response.partitions:
            topic_id = topic_ids.get(item.tp)
            if topic_id is not None and item.error in _LOG_VERDICTS:
                self._latest[topic_id, item.tp] = _LOG_VERDICTS[item.error]
        return True

    def take(self) -> dict[tuple[str, TopicPartition], bool]:
        """Take out what has come: by topic id and partition, whether the broker can use the replica."""
        latest, self._latest = self._latest, {}
        return latest


_LOG_VERDICTS: Final = {ErrorCode.NONE: True, ErrorCode.KAFKA_STORAGE_ERROR: False}


@frozen
class ControllerEvent:
    """What all events share."""

    @property
    def name(self) -> str:
        """The event's type, as statistics and the trace show it."""
        return type(self).__name__

    @property
    def key(self) -> Hashable:
        """What the event looks at: it waits in the queue at most once per key. None means always."""
        return self

    @property
    def subject(self) -> Hashable | None:
        """The one topic or request that a fault is to be blamed on, None if the event is about the whole cluster."""
        return None

    def preempt(self) -> None:
        """Be dropped unprocessed."""


# --- taking and leaving office ----------------------------------------------------------------------------------


@frozen
class Elect(ControllerEvent):
    """Look whether there is a controller, and become it if there is none. At start and when `/controller` changed."""


@frozen
class SessionEnded(ControllerEvent):
    """The session with the metadata store is gone, and the office with it."""


@frozen
class Reload(ControllerEvent):
    """The connection to the metadata store came back, and every watch is lost: look at everything again."""


# --- the cluster changed ----------------------------------------------------------------------------------------


@frozen
class BrokerChange(ControllerEvent):
    """The list of registered brokers changed."""


@frozen
class TopicChange(ControllerEvent):
    """The list of topics changed."""


@frozen
class PartitionModifications(ControllerEvent):
    """A topic's znode changed."""

    topic: str

    @property
    def subject(self) -> Hashable:
        """The topic."""
        return self.topic


@frozen
class BrokerModifications(ControllerEvent):
    """A registration's data changed: the broker listens elsewhere."""

    broker_id: int


@frozen
class TopicDeletion(ControllerEvent):
    """The list of topics to be deleted changed, or it is time to try again what failed."""


@frozen
class PreferredReplicaElection(ControllerEvent):
    """`/admin/preferred_replica_election` was written."""


@frozen
class AutoPreferredReplicaLeaderElection(ControllerEvent):
    """It is time to look whether too many partitions are led by others than their preferred leaders.

    Each controllership has a timer of its own for that.
    """

    controller_epoch: int


@frozen
class IsrChangeNotification(ControllerEvent):
    """Leaders changed ISRs in the store by themselves, as Kafka's did before AlterPartition."""


@frozen
class LogDirEventNotification(ControllerEvent):
    """Brokers announced that they lost a log directory."""


@frozen
class ConfigChange(ControllerEvent):
    """Settings of topics or brokers changed."""


@frozen
class ZkPartitionReassignment(ControllerEvent):
    """`/admin/reassign_partitions` changed."""


@frozen
class PartitionReassignmentIsrChange(ControllerEvent):
    """The ISR of partitions that are being reassigned changed: they may be ready for phase B."""

    partitions: tuple[TopicPartition, ...]


@frozen
class ReassignmentProgress(ControllerEvent):
    """It is time to look what moves, for those who ask brokers how far it is."""


@frozen
class StrayDeletion(ControllerEvent):
    """It is time to tell brokers again to delete the strays that they have."""


@frozen
class ReplicasDeleted(ControllerEvent):
    """A broker has deleted replicas that it was told to delete, each by an order of the leader epoch beside it."""

    deletions: tuple[tuple[Stray, int], ...]


@frozen
class ReplicasNotDeleted(ControllerEvent):
    """A broker has failed to delete replicas that it was told to delete."""

    replicas: tuple[Stray, ...]


@frozen
class MetadataFailed(ControllerEvent):
    """An incarnation of a broker has failed to apply an UpdateMetadata request."""

    broker_id: int
    broker_epoch: int


@frozen
class MetadataResend(ControllerEvent):
    """It is time to send an incarnation of a broker the cluster's metadata again."""

    broker_id: int
    broker_epoch: int


@frozen
class LeaderAndIsrResponseReceived(ControllerEvent):
    """An incarnation of a broker has answered under a controllership whether it can use its replicas.

    One of it in the queue is enough for all the answers that it gathers in `outcomes`.
    """

    broker_id: int
    broker_epoch: int
    controller_epoch: int
    outcomes: Outcomes = field(factory=Outcomes, eq=False, repr=False)


# --- requests ---------------------------------------------------------------------------------------------------


@frozen(eq=False)
class RequestEvent(ControllerEvent):
    """A request of any api that needs the active controller, and its reply."""

    request: Request[object]
    reply: Reply[object] = field(factory=Reply)

    @property
    def name(self) -> str:
        """The api's name."""
        return type(self.request).__name__.removesuffix("Request")

    @property
    def key(self) -> Hashable:
        """The reply, which is unique: every request is processed, unless it is withdrawn."""
        return self.reply

    @property
    def subject(self) -> Hashable:
        """The request: an equal one is to be blamed as well."""
        return self.request

    def preempt(self) -> None:
        """Answer that this is not the controller."""
        self.reply.set(not_controller())
