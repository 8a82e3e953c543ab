"""The answers of a controller to Kafka's administrators, whose clients send some requests to the controller alone.

What Kafka's own controller refuses is refused with its code and its words. The rest passes through the event queue like
the requests of our own administrators. Answers about topics come when brokers know the change, because clients ask any
broker next, or with REQUEST_TIMED_OUT.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import trio
from attrs import define, evolve
from msgspec.structs import replace

from controller.channels.topic_settings import topic_settings
from controller.model import kafka_refusals
from controller.model.context import ControllerContext
from controller.node.office import Office
from transport import messages
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka, partition_requests, topic_requests
from transport.kafka.messages.create_partitions_request import CreatePartitionsTopic
from transport.kafka.messages.create_topics_request import CreatableTopic
from transport.kafka.server import Handlers, KafkaRequest
from transport.kafka.topic_requests import CreatedTopic
from transport.messages import PartitionError, Request, TopicError
from transport.metadata import NO_LEADER, TopicPartition

R = TypeVar("R")

_HIDDEN: Final = CreatedTopic(-1, -1, config_error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
"""A new topic for those who may not read its settings."""

POLL_SECONDS: Final = 0.01
NOT_AT_ALL: Final = -math.inf
"""The end of the time of a client that does not wait: it is told so even if there was nothing to wait for."""

TELLING_SECONDS: Final = 5.0
"""The longest wait for brokers that do not answer, once a change is made."""


class Ask(Protocol):
    """Asks in the name of a caller: `answer` takes what the caller is admitted to."""

    async def __call__(
        self, request: KafkaRequest, asked: Request[R], answer: Callable[[Any], Awaitable[object]] | None = None
    ) -> R | ApiError:
        """Return the answer to a request, or the ApiError that it is refused with."""


@define
class KafkaAdmin:
    """Answers administrators. `queue` answers requests of ours; `office` returns the office that is held, if any."""

    ask: Ask
    queue: Callable[[Request[Any]], Awaitable[object]]
    office: Callable[[], Office | None]

    def handlers(self) -> Handlers:
        """Return the answers by their requests."""
        return {
            kafka.AlterPartitionReassignmentsRequest: self._alter_reassignments,
            kafka.CreatePartitionsRequest: self._create_partitions,
            kafka.CreateTopicsRequest: self._create_topics,
            kafka.DeleteTopicsRequest: self._delete_topics,
            kafka.ElectLeadersRequest: self._elect_leaders,
            kafka.ListPartitionReassignmentsRequest: self._list_reassignments,
        }

    # --- topics -------------------------------------------------------------------------------------------------

    async def _create_topics(self, request: KafkaRequest) -> kafka.CreateTopicsResponse:
        message: kafka.CreateTopicsRequest = request.message
        refused = kafka_refusals.repeated_or_prohibited(message.topics)
        wanted = {topic.name: topic for topic in message.topics if topic.name not in refused}
        named = tuple(messages.NewTopic(name, -1, -1) for name in wanted)
        asked = messages.CreateTopicsRequest(named, message.validate_only)
        ends = _deadline(message.timeout_ms)
        answer = await self.ask(request, asked, partial(self._create, wanted, ends))
        if isinstance(answer, ApiError):
            return topic_requests.create_topics_answer(message, _without_words(answer))
        outcomes = refused | _by_name(answer.topics, "Authorization failed.")
        made = [name for name, outcome in outcomes.items() if outcome.error is ErrorCode.NONE]
        told = await self._told(request, {name: wanted[name] for name in made})
        return topic_requests.create_topics_answer(message, outcomes, told)

    async def _create(
        self, wanted: Mapping[str, CreatableTopic], ends: float, asked: messages.CreateTopicsRequest
    ) -> messages.CreateTopicsResponse:
        """Create those of the topics that Kafka would, and wait for their leaders."""
        context = await self._context()
        judged = [kafka_refusals.judge_new_topic(context, wanted[topic.name]) for topic in asked.topics]
        refused = [one for one in judged if isinstance(one, TopicError)]
        new = tuple(one for one in judged if isinstance(one, messages.NewTopic))
        answer = messages.CreateTopicsResponse(())
        if new:
            answer = await self._queued(replace(asked, topics=new))
        outcomes = [_in_kafkas_words(outcome) for outcome in answer.topics]
        if not asked.validate_only:
            outcomes = await self._awaited(outcomes, ends, self._are_led)
        return messages.CreateTopicsResponse((*outcomes, *refused))

    async def _told(self, request: KafkaRequest, made: Mapping[str, CreatableTopic]) -> dict[str, CreatedTopic]:
        """Return what is told of topics that have been created, or could be: to those who may read their settings."""
        office = self.office()
        if office is None or not made or request.header.version < topic_requests.TELLS_SETTINGS:
            return {}
        visible = await self._visible(request, made)
        context = office.context
        judged = {name: kafka_refusals.judge_new_topic(context, made[name]) for name in visible}
        settings = await topic_settings(office.channels, [name for name in visible if name in context.topics])
        told = {name: _described(context, name, topic) for name, topic in judged.items()}
        return dict.fromkeys(made, _HIDDEN) | {
            name: evolve(topic, configs=settings.get(name, ())) for name, topic in told.items()
        }

    async def _visible(self, request: KafkaRequest, names: Iterable[str]) -> list[str]:
        """Return those of the topics whose settings the caller may read."""
        visible: list[str] = []

        async def take(asked: messages.DescribeConfigsRequest) -> messages.DescribeConfigsResponse:
            visible.extend(resource.name for resource in asked.resources)
            await trio.lowlevel.checkpoint()
            return messages.DescribeConfigsResponse(())

        topics = tuple(messages.ConfigResource(messages.ConfigResourceType.TOPIC, name) for name in names)
        await self.ask(request, messages.DescribeConfigsRequest(topics), take)
        return visible

    async def _create_partitions(self, request: KafkaRequest) -> kafka.CreatePartitionsResponse:
        message: kafka.CreatePartitionsRequest = request.message
        refused = kafka_refusals.repeated(message.topics)
        wanted = {topic.name: topic for topic in message.topics if topic.name not in refused}
        named = tuple(messages.NewPartitions(name, topic.count) for name, topic in wanted.items())
        asked = messages.CreatePartitionsRequest(named, message.validate_only)
        answer = await self.ask(request, asked, partial(self._grow, wanted, _deadline(message.timeout_ms)))
        if isinstance(answer, ApiError):
            return topic_requests.create_partitions_answer(message, _without_words(answer))
        told = _by_name(answer.topics, "The topic authorization is failed.")
        return topic_requests.create_partitions_answer(message, refused | told)

    async def _grow(
        self, wanted: Mapping[str, CreatePartitionsTopic], ends: float, asked: messages.CreatePartitionsRequest
    ) -> messages.CreatePartitionsResponse:
        """Add partitions to those of the topics to which Kafka would, and wait for their leaders."""
        context = await self._context()
        faults = {topic.name: kafka_refusals.growth_fault(context, wanted[topic.name]) for topic in asked.topics}
        refused = [TopicError(name, *fault) for name, fault in faults.items() if fault is not None]
        more = tuple(topic_requests.new_partitions(wanted[name]) for name, fault in faults.items() if fault is None)
        answer = messages.CreatePartitionsResponse(())
        if more:
            answer = await self._queued(replace(asked, topics=more))
        outcomes = list(answer.topics)
        if not asked.validate_only:
            outcomes = await self._awaited(outcomes, ends, self._are_led)
        return messages.CreatePartitionsResponse((*outcomes, *refused))

    async def _delete_topics(self, request: KafkaRequest) -> kafka.DeleteTopicsResponse:
        message: kafka.DeleteTopicsRequest = request.message
        version, office = request.header.version, self.office()
        topics = topic_requests.topics_to_delete(message, version)
        name_of = (lambda _: None) if office is None else office.context.topic_names.get
        found = {topic.topic_id: name_of(topic.topic_id) for topic in topics if topic.topic_id}
        by_id = {topic_id: name for topic_id, name in found.items() if name is not None}
        names = dict.fromkeys([*(topic.name for topic in topics if topic.name is not None), *by_id.values()])
        asked = messages.DeleteTopicsRequest(tuple(names))
        if any(topic.name is not None and topic.topic_id for topic in topics):
            answer: messages.DeleteTopicsResponse | ApiError = ApiError(ErrorCode.INVALID_REQUEST)
        else:
            answer = await self.ask(request, asked, partial(self._delete, _deadline(message.timeout_ms)))
        outcomes = answer if isinstance(answer, ApiError) else {one.name: one for one in answer.topics}
        return topic_requests.delete_topics_answer(topics, by_id, outcomes, version)

    async def _delete(self, ends: float, asked: messages.DeleteTopicsRequest) -> messages.DeleteTopicsResponse:
        """Begin to delete topics, and wait until brokers know."""
        context = await self._context()
        going = [name for name in asked.names if name in context.deletions]
        refused = [TopicError(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for name in going]
        names = tuple(name for name in asked.names if name not in going)
        answer = await self._queued(replace(asked, names=names))
        outcomes = await self._awaited(list(answer.topics), ends, self._are_going)
        return messages.DeleteTopicsResponse((*outcomes, *refused))

    async def _awaited(
        self, outcomes: list[TopicError], ends: float, is_done: Callable[[Collection[str]], bool]
    ) -> list[TopicError]:
        """Wait until the changes are made and brokers know them; those that are not made in time have timed out."""
        names = {outcome.name for outcome in outcomes if outcome.error is ErrorCode.NONE}
        await self._until_told(names, ends, partial(is_done, names))
        late = {name for name in names if ends == NOT_AT_ALL or not is_done([name])}
        return [TopicError(one.name, ErrorCode.REQUEST_TIMED_OUT) if one.name in late else one for one in outcomes]

    async def _until_told(self, topics: Collection[str], ends: float, is_done: Callable[[], bool]) -> None:
        await _until(lambda: self.office() is None or is_done(), ends)
        ends = min(ends, trio.current_time() + TELLING_SECONDS)
        if trio.current_time() < ends:
            await self._until_processed(ends)
            await _until(lambda: self._have_told(topics), ends)

    async def _until_processed(self, ends: float) -> None:
        """Wait for the end of the event that has made a change, as it may tell brokers of it in a later round."""
        with trio.move_on_at(ends), suppress(ApiError):
            await self._queued(messages.MetadataRequest(()))

    def _have_told(self, topics: Collection[str]) -> bool:
        office = self.office()
        return office is None or office.channels.have_told(topics)

    def _are_led(self, names: Collection[str]) -> bool:
        """Return whether all partitions of some topics have leaders."""
        office = self.office()
        if office is None or any(name not in office.context.topics for name in names):
            return False
        led = office.context.leadership
        return all(tp in led and led[tp].leader != NO_LEADER for tp in office.context.partitions(names))

    def _are_going(self, names: Collection[str]) -> bool:
        """Return whether topics are being deleted, or are gone."""
        office = self.office()
        if office is None:
            return False
        context = office.context
        return all(name in context.deletions or name not in context.topics for name in names)

    # --- partitions ---------------------------------------------------------------------------------------------

    async def _elect_leaders(self, request: KafkaRequest) -> kafka.ElectLeadersResponse:
        message: kafka.ElectLeadersRequest = request.message
        version = request.header.version
        try:
            asked = partition_requests.elect_leaders(message)
        except ApiError as refusal:
            return partition_requests.elect_leaders_answer(message, version, refusal)
        ends = _deadline(message.timeout_ms)
        answer = await self.ask(request, asked)
        if not isinstance(answer, ApiError):
            elected = {one.topic for one in answer.partitions if one.error is ErrorCode.NONE}
            await self._until_told(elected, ends, lambda: True)
        return partition_requests.elect_leaders_answer(message, version, answer)

    async def _alter_reassignments(self, request: KafkaRequest) -> kafka.AlterPartitionReassignmentsResponse:
        asked = partition_requests.alter_reassignments(request.message)
        return partition_requests.alter_reassignments_answer(await self.ask(request, asked, self._move))

    async def _move(
        self, asked: messages.AlterPartitionReassignmentsRequest
    ) -> messages.AlterPartitionReassignmentsResponse:
        """Begin or cancel those of the reassignments that Kafka would."""
        context = await self._context()
        judged = {item.tp: kafka_refusals.move_refusal(context, item) for item in asked.partitions}
        refused: list[PartitionError] = [one for one in judged.values() if one is not None]
        sound = tuple(item for item in asked.partitions if judged[item.tp] is None)
        answer = await self._queued(replace(asked, partitions=sound))
        return messages.AlterPartitionReassignmentsResponse((*answer.partitions, *refused))

    async def _list_reassignments(self, request: KafkaRequest) -> kafka.ListPartitionReassignmentsResponse:
        asked = partition_requests.list_reassignments(request.message)
        return partition_requests.list_reassignments_answer(await self.ask(request, asked))

    # --- both ---------------------------------------------------------------------------------------------------

    async def _context(self) -> ControllerContext:
        """Return the context of the office once it is certain that it is held. Raises ApiError(NOT_CONTROLLER)."""
        office = self.office()
        if office is None or not office.is_loaded or not await office.is_held() or self.office() is not office:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        return office.context

    async def _queued(self, asked: Request[R]) -> R:
        answer: Any = await self.queue(asked)
        return answer  # type: ignore[no-any-return]  # the event queue answers each request with its response


async def _until(condition: Callable[[], bool], ends: float) -> None:
    while not condition() and trio.current_time() < ends:  # noqa: ASYNC110  many tasks change what is looked at
        await trio.sleep(POLL_SECONDS)


def _deadline(timeout_ms: int) -> float:
    return trio.current_time() + timeout_ms / 1000 if timeout_ms > 0 else NOT_AT_ALL


def _without_words(refusal: ApiError) -> ApiError:
    """Return a refusal of everything as Kafka's controller words it: not at all."""
    return ApiError(refusal.code) if refusal.code is ErrorCode.NOT_CONTROLLER else refusal


def _by_name(outcomes: Iterable[TopicError], unauthorized: str) -> dict[str, TopicError]:
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return {one.name: TopicError(one.name, denied, unauthorized) if one.error is denied else one for one in outcomes}


def _in_kafkas_words(outcome: TopicError) -> TopicError:
    if outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS:
        return TopicError(outcome.name, outcome.error, f"Topic '{outcome.name}' already exists.")
    return outcome


def _described(context: ControllerContext, name: str, judged: messages.NewTopic | TopicError) -> CreatedTopic:
    if isinstance(judged, messages.NewTopic):
        rows = judged.assignments
        return CreatedTopic(len(rows) or judged.partitions, len(rows[0]) if rows else judged.replication_factor)
    if name not in context.topics:
        return CreatedTopic(-1, -1)
    replicas = context.assignment(TopicPartition(name, 0)).replicas
    return CreatedTopic(len(context.topics[name].znode.partitions), len(replicas), context.topic_id(name))
