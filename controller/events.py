"""The events of the controller's queue. They carry no data from the store, but name what to read (KAFKA-5879).

An event that re-reads the store has a key, under which it waits in the queue at most once. A request has a `Reply`,
which gets exactly one answer: NOT_CONTROLLER if the request is dropped, REQUEST_TIMED_OUT if the office is lost while
it is being processed, because it is then unknown how much of it was done.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Final, Generic, TypeVar

import trio
from attrs import define, field, frozen

from controller.gathered import CaughtUp, MoreTopics, Outcomes
from transport.errors import ApiError, ErrorCode
from transport.kafka.releases import Release
from transport.messages import AlterPartitionRequest, PartitionState, Request, StopReplicaPartition
from transport.metadata import LeaderAndIsr, Stray, TopicPartition

R = TypeVar("R")

DECIDED_TOGETHER: Final = 1000
"""The most partitions of the proposals that leaders make in one event: so many moves begin in one, too."""


def not_controller() -> ApiError:
    """Return the answer of a node that is not the active controller, or no longer."""
    return ApiError(ErrorCode.NOT_CONTROLLER, "this is not the active controller: ask the cluster who is")


def cut_off() -> ApiError:
    """Return the answer to a request during which the controller lost its office."""
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, "the controller lost its office before the request was done")


@define(eq=False)
class Reply(Generic[R]):
    """The one answer to a request: the first one set is kept."""

    _done: trio.Event = field(factory=trio.Event, init=False)
    _answer: R | ApiError | None = field(default=None, init=False)

    def set(self, answer: R | ApiError) -> None:
        """Set the answer, unless there is one already."""
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


@frozen
class ControllerEvent:
    """The base class of all events."""

    is_barrier: ClassVar[bool] = False
    """Whether requests of administrators that come after the event wait until it has been processed.

    The context may lack a change that was acknowledged before they were sent, until this event has read it; or this
    event may find that the controller has been deposed.
    """

    @property
    def name(self) -> str:
        """The event's type, as shown in statistics and the trace."""
        return type(self).__name__

    @property
    def key(self) -> Hashable:
        """The key under which the event waits in the queue at most once; None for no such limit."""
        return self

    @property
    def subject(self) -> Hashable | None:
        """The topic or request to which a fault is attributed, None if the event is about the whole cluster."""
        return None

    def preempt(self) -> None:
        """React to being dropped unprocessed."""


# --- taking and leaving office ----------------------------------------------------------------------------------


@frozen
class Elect(ControllerEvent):
    """Become the controller if there is none; queued at start and when `/controller` changes."""

    is_barrier: ClassVar[bool] = True


@frozen
class SessionEnded(ControllerEvent):
    """The session with the metadata store has expired, which ends the office."""

    is_barrier: ClassVar[bool] = True


@frozen
class Reload(ControllerEvent):
    """The connection to the metadata store is back, but all watches may be lost: read everything again."""

    is_barrier: ClassVar[bool] = True


# --- the cluster changed ----------------------------------------------------------------------------------------


@frozen
class BrokerChange(ControllerEvent):
    """The list of registered brokers changed."""


@frozen
class TopicChange(ControllerEvent):
    """The list of topics changed."""

    is_barrier: ClassVar[bool] = True


@frozen
class PartitionModifications(ControllerEvent):
    """A topic's znode changed, and right after it those of `more` topics, which are looked at together with it."""

    topic: str
    more: MoreTopics = field(factory=MoreTopics, eq=False, repr=False)

    @property
    def subject(self) -> Hashable | None:
        """The topic, if no other has joined it."""
        return None if self.more else self.topic

    def preempt(self) -> None:
        """Let no further topic join."""
        self.more.close()


@frozen
class BrokerModifications(ControllerEvent):
    """A broker's registration changed, for example its address."""

    broker_id: int


@frozen
class TopicDeletion(ControllerEvent):
    """The list of topics to delete changed, or failed deletions are due for a retry."""

    is_barrier: ClassVar[bool] = True


@frozen
class PreferredReplicaElection(ControllerEvent):
    """`/admin/preferred_replica_election` was written."""


@frozen
class AutoPreferredReplicaLeaderElection(ControllerEvent):
    """The check for partitions not led by their preferred leader is due. Each controllership has its own timer."""

    controller_epoch: int


@frozen
class IsrChangeNotification(ControllerEvent):
    """Leaders changed ISRs directly in the store, as in Kafka before AlterPartition."""


@frozen
class LogDirEventNotification(ControllerEvent):
    """Brokers announced that they lost a log directory."""


@frozen
class ConfigChange(ControllerEvent):
    """Settings of topics or brokers changed."""

    is_barrier: ClassVar[bool] = True


@frozen
class ZkPartitionReassignment(ControllerEvent):
    """`/admin/reassign_partitions` changed."""


@frozen
class PartitionReassignmentIsrChange(ControllerEvent):
    """The ISR of partitions that are being reassigned changed: they may be ready for phase B.

    One such event in the queue suffices, because it collects them in `caught_up`.
    """

    caught_up: CaughtUp = field(eq=False, repr=False)


@frozen
class ReassignmentProgress(ControllerEvent):
    """The list of current moves is due, for the poller that asks brokers about their progress."""


@frozen
class RolloutsDue(ControllerEvent):
    """Something has happened from which a rollout may go on: a move of it has ended, brokers came or went."""


@frozen
class RolloutLook(ControllerEvent):
    """The causes that hold rollouts up are due to be looked at again."""


@frozen
class RolloutSignalled(ControllerEvent):
    """The signal of a rollout's operator was asked: `text` says why nothing may begin, empty if something may."""

    rollout: str
    text: str


@frozen
class CopyingSeen(ControllerEvent):
    """The brokers that copy have answered within so many seconds, except the silent ones; `copied` bytes per second."""

    seconds: float
    silent: tuple[int, ...]
    copied: float | None


@frozen
class RoomSeen(ControllerEvent):
    """Brokers have told the room on their disks: id, free bytes in all, and in the roomiest directory.

    They have also told how many bytes moves of the rollout in flight still lack. Those in `untold` have been asked for
    their room in vain.
    """

    room: tuple[tuple[int, int, int], ...]
    lacking: tuple[tuple[TopicPartition, int], ...] = ()
    untold: tuple[int, ...] = ()


@frozen
class StrayDeletion(ControllerEvent):
    """Orders to delete strays are due to be sent to brokers again."""


@frozen
class ReplicasDeleted(ControllerEvent):
    """A broker has carried out these orders to delete replicas."""

    broker_id: int
    orders: tuple[StopReplicaPartition, ...] = field(hash=False)

    @property
    def deletions(self) -> list[tuple[Stray, int]]:
        """The replicas, each with the leader epoch of its order."""
        return [(Stray(o.topic_id, o.topic, o.partition, self.broker_id), o.leader_epoch) for o in self.orders]


@frozen
class TopicsDeleted(ControllerEvent):
    """All replicas of these topics have been deleted: their znodes are left."""

    names: tuple[str, ...] = field(hash=False)


@frozen
class ReplicasNotDeleted(ControllerEvent):
    """A broker has failed to delete replicas as ordered."""

    replicas: tuple[Stray, ...] = field(hash=False)


@frozen
class OrderFailed(ControllerEvent):
    """A broker incarnation has failed to carry out an order, a part of which may have taken effect.

    The order is an UpdateMetadata or a whole LeaderAndIsr. Those for single replicas are repeated on their own.
    """

    broker_id: int
    broker_epoch: int
    gone: tuple[PartitionState, ...] = ()
    """The deletions in the order: the metadata in effect do not tell a broker of Kafka's that a topic is gone."""


@frozen
class OrdersResend(ControllerEvent):
    """The orders in effect are due to be sent to a broker incarnation again."""

    broker_id: int
    broker_epoch: int


@frozen
class DeletionsResend(ControllerEvent):
    """A broker incarnation of Kafka's is due to be told again that partitions are gone."""

    broker_id: int
    broker_epoch: int
    gone: tuple[PartitionState, ...]


@frozen
class OvertakenLeader(ControllerEvent):
    """A leader whose proposal crossed its new leader epoch has had the time to hear of both, and to propose again."""

    tp: TopicPartition
    leadership: LeaderAndIsr


@frozen
class LeaderAndIsrResponseReceived(ControllerEvent):
    """A broker incarnation has answered one controllership which orders for its replicas it has carried out.

    One such event in the queue suffices, because it collects all answers in `outcomes`.
    """

    broker_id: int
    broker_epoch: int
    controller_epoch: int
    outcomes: Outcomes = field(factory=Outcomes, eq=False, repr=False)


@frozen
class FailedReplicasDue(ControllerEvent):
    """Replicas that failed to carry out an order are due to be tried again, at a time of trio's clock."""

    at: float


@frozen
class BrokerReleaseSeen(ControllerEvent):
    """A connection to a broker incarnation of Apache Kafka's has shown its release."""

    broker_id: int
    broker_epoch: int
    release: Release


# --- requests ---------------------------------------------------------------------------------------------------


@frozen(eq=False)
class RequestEvent(ControllerEvent):
    """A request that needs the active controller, and its reply."""

    request: Request[object]
    reply: Reply[object] = field(factory=Reply, kw_only=True)

    @property
    def name(self) -> str:
        """The name of the API."""
        return type(self.request).__name__.removesuffix("Request")

    @property
    def key(self) -> Hashable:
        """The reply, which is unique: requests never merge, and one can be withdrawn by its key."""
        return self.reply

    @property
    def subject(self) -> Hashable:
        """The request: a fault counts against equal requests as well."""
        return self.request

    @property
    def asked(self) -> object:
        """The argument of the request's handler."""
        return self.request

    def answer(self, answer: object) -> None:
        """Set the answer, unless there is one already."""
        self.reply.set(answer)

    def preempt(self) -> None:
        """Answer that this is not the controller."""
        self.answer(not_controller())


@frozen(eq=False)
class ProposalsEvent(RequestEvent):
    """A leader's request for other ISRs, and those of `others` that came right after it, about other partitions.

    They are decided together, and each has its own answer.
    """

    request: AlterPartitionRequest
    others: list[ProposalsEvent] = field(factory=list, init=False)
    _tps: set[TopicPartition] = field(init=False)

    @_tps.default
    def _tps_of_first(self) -> set[TopicPartition]:
        return {item.tp for item in self.request.partitions}

    def take_in(self, later: ProposalsEvent) -> bool:
        """Let a later request join; return whether it is about other partitions, and not too many."""
        added = {item.tp for item in later.request.partitions}
        if len(self._tps) + len(added) > DECIDED_TOGETHER or not self._tps.isdisjoint(added):
            return False
        self._tps.update(added)
        self.others.append(later)
        return True

    @property
    def subject(self) -> Hashable | None:
        """The request, if no other has joined it."""
        return None if self.others else self.request

    @property
    def asked(self) -> list[AlterPartitionRequest]:
        """All requests."""
        return [self.request, *(other.request for other in self.others)]

    def answer(self, answer: object) -> None:
        """Set the answers, one for each request or one for all."""
        replies = [self.reply, *(other.reply for other in self.others)]
        answers = answer if isinstance(answer, list) else [answer] * len(replies)
        for reply, own in zip(replies, answers, strict=True):
            reply.set(own)


def event_of(request: Request[object]) -> RequestEvent:
    """Return the event of a request."""
    return ProposalsEvent(request) if isinstance(request, AlterPartitionRequest) else RequestEvent(request)
