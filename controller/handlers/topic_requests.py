"""Requests to create topics, and to add partitions to them (KIP-195)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from controller.handlers.config_changes import new_topic_fault, new_topic_room_fault, new_topic_writes
from controller.handlers.topics import refresh_topics, start_partitions
from controller.model.context import ControllerContext
from controller.model.facts import TopicWritten
from controller.model.faults import unknown_topic
from controller.model.placement import Start, Unplaceable, next_start, place_replicas
from controller.model.rounds import Rounds, Step, commit_each, existing, until_none_is_left
from transport.errors import ApiError, ErrorCode, Fault
from transport.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewPartitions,
    NewTopic,
    TopicError,
)
from transport.metadata import ReplicaAssignment, TopicPartition, is_topic_name
from transport.store import formats, paths
from transport.store.protocol import Create, Set

Assignments = Mapping[int, ReplicaAssignment]


# --- creation ---------------------------------------------------------------------------------------------------


def create_topics(
    context: ControllerContext, request: CreateTopicsRequest, new_ids: Iterable[str], starts: Iterable[Start]
) -> Rounds[CreateTopicsResponse]:
    """Write settings and znodes of new topics; the watch on the list of topics then starts their partitions.

    `starts` supplies the start position of each topic's placement.
    """
    topics = request.topics
    marked = yield from _marked(topic.name for topic in topics)
    names = _Names(context, topics)
    faults: dict[str, Fault] = {}
    creations: dict[str, Create] = {}
    for topic, topic_id, start in zip(topics, new_ids, starts, strict=False):
        try:
            names.check(topic.name, marked)
            _require_valid(new_topic_fault(context, topic.configs))
            znode = formats.TopicZnode(_placed(context, topic, start), topic_id)
            create = Create(paths.topic(topic.name), _encode(context, znode))
            _require_valid(new_topic_room_fault(context, topic.name, topic.configs, create))
            creations[topic.name] = create
            # The names of one request must be distinct in metrics, too.
            names.take(topic.name)
        except ApiError as refusal:
            faults[topic.name] = refusal.code, refusal.message
    if not request.validate_only:
        configs = yield from new_topic_writes({each.name: each.configs for each in topics if each.name in creations})
        steps = {name: Step(writes=(configs[name], create)) for name, create in creations.items()}
        rejected = list[str]()
        stale = yield from commit_each("topics", steps, on_rejected=rejected.extend)
        faults.update((name, _exists(name)) for name in stale)
        faults.update((name, _unwritable(name)) for name in rejected)
    return CreateTopicsResponse(tuple(TopicError(topic.name, *faults.get(topic.name, ())) for topic in topics))


def _marked(names: Iterable[str]) -> Rounds[frozenset[str]]:
    """Return those of the topics that are marked for deletion in the store."""
    return frozenset((yield from existing(paths.delete_topic, filter(is_topic_name, dict.fromkeys(names)))))


class _Names:
    """The names of topics that exist or are about to be created, to validate the names of new ones."""

    def __init__(self, context: ControllerContext, asked: Sequence[NewTopic]) -> None:
        self._known = context.topics
        self._asked = Counter(topic.name for topic in asked)
        self._alike: defaultdict[str, list[str]] = defaultdict(list)
        for name in context.topics:
            self.take(name)

    def take(self, name: str) -> None:
        """Remember a name that is in use."""
        if "." in name or "_" in name:
            self._alike[_metric_name(name)].append(name)

    def check(self, name: str, marked: frozenset[str]) -> None:
        """Raise ApiError if a new topic cannot have this name: illegal, taken, or not distinct in metrics."""
        if not is_topic_name(name):
            text = f"{name!r} is not a legal name: up to 249 letters, digits, '.', '_' and '-'"
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        _check_once(self._asked, name)
        if name in marked:
            text = f"topic {name} is being deleted: wait until it is gone"
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, text)
        if name in self._known:
            raise ApiError(*_exists(name))
        if alike := self._alike.get(_metric_name(name)):
            text = f"topic {name} would be taken for {', '.join(alike)} in metrics, where '.' and '_' are the same"
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)


def _require_valid(config_fault: str | None) -> None:
    if config_fault is not None:
        raise ApiError(ErrorCode.INVALID_CONFIG, config_fault)


def _check_once(asked: Mapping[str, int], name: str) -> None:
    if asked[name] > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"topic {name} is asked for more than once")


def _metric_name(name: str) -> str:
    return name.replace(".", "_")


def _exists(name: str) -> Fault:
    return ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists"


def _unwritable(name: str) -> Fault:
    return ErrorCode.OPERATION_NOT_ATTEMPTED, f"the znodes of topic {name} cannot be written: see the controller's log"


def _placed(context: ControllerContext, topic: NewTopic, start: Start) -> Assignments:
    """Return the assignment of a new topic: as requested, or placed on the live brokers."""
    live = context.able_brokers()
    if not live:
        text = "no broker is alive: start one with `klamm broker run --id 1`"
        raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, text)
    if topic.assignments:
        return _as_asked(context, topic.assignments, 0, len(topic.assignments[0]))
    if topic.partitions < 1:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "a topic needs at least 1 partition")
    factor = topic.replication_factor
    if not 1 <= factor <= len(live):
        text = f"replication factor {factor} is not between 1 and the {len(live)} live brokers"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return _dealt(context, range(topic.partitions), factor, start)


def _as_asked(
    context: ControllerContext, assignments: Sequence[tuple[int, ...]], first: int, factor: int
) -> Assignments:
    """Return assignments as requested, by number from `first` on; each has `factor` live brokers."""
    live = context.able_brokers()
    for number, replicas in enumerate(assignments, first):
        text = f"replicas {list(replicas)} of partition {number}"
        if not replicas or len(set(replicas)) != len(replicas) or len(replicas) != factor:
            cure = f"name distinct brokers, {factor} as for the others"
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{text}: {cure}")
        if dead := [r for r in replicas if r not in live]:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{text}: brokers {dead} are not alive")
    return {number: ReplicaAssignment(replicas) for number, replicas in enumerate(assignments, first)}


def _dealt(context: ControllerContext, partitions: range, factor: int, start: Start) -> Assignments:
    """Place partitions on the live brokers."""
    # Check a lower bound before building the list: each takes at least `"0":[1],` and 2 bytes per further replica.
    _check_size(context, len(partitions), len(partitions) * (6 + 2 * factor))
    try:
        placed = place_replicas(_racks(context), partitions, factor, start)
    except Unplaceable as fault:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(fault)) from fault
    return {number: ReplicaAssignment(replicas) for number, replicas in placed.items()}


def _racks(context: ControllerContext) -> dict[int, str | None]:
    """Return the racks of the brokers that can take replicas."""
    return {id_: context.brokers[id_].rack for id_ in context.able_brokers()}


def _encode(context: ControllerContext, znode: formats.TopicZnode) -> bytes:
    data = formats.encode_topic(znode)
    _check_size(context, len(znode.partitions), len(data))
    return data


def _check_size(context: ControllerContext, partitions: int, size: int) -> None:
    if size > context.config.request_limits.new_topic:
        text = f"{partitions} partitions are too many for one topic: their assignment must fit a znode"
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)


# --- growth -----------------------------------------------------------------------------------------------------


def create_partitions(context: ControllerContext, request: CreatePartitionsRequest) -> Rounds[CreatePartitionsResponse]:
    """Add partitions to topics' znodes, and start them."""
    topics = request.topics
    marked = yield from _marked(topic.name for topic in topics)
    asked = Counter(topic.name for topic in topics)
    faults: dict[str, Fault] = {}

    def grow(pending: list[NewPartitions]) -> Rounds[list[NewPartitions]]:
        steps = {}
        for topic in pending:
            try:
                _check_once(asked, topic.name)
                steps[topic.name] = _growth(context, topic, marked)
            except ApiError as refusal:
                faults[topic.name] = refusal.code, refusal.message
        if request.validate_only:
            return []
        rejected = list[str]()
        stale = yield from commit_each("grow", steps, on_rejected=rejected.extend)
        faults.update((name, _unwritable(name)) for name in rejected)
        missed = {*stale, *rejected}
        grown = [step for name, step in steps.items() if name not in missed]
        yield from start_partitions(context, [tp for step in grown for tp in step.subjects])
        left = [topic for topic in pending if topic.name in stale]
        # Refused: the znode changed after we had read it. The request is judged again on the topic as it is now.
        there = yield from refresh_topics(context, [topic.name for topic in left])
        for topic in left:
            if topic.name not in there:
                text = f"topic {topic.name} is gone, or its znode cannot be decoded: see the controller's log"
                faults[topic.name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text
        return [topic for topic in left if topic.name in there]

    yield from until_none_is_left("grow", topics, grow)
    return CreatePartitionsResponse(tuple(TopicError(topic.name, *faults.get(topic.name, ())) for topic in topics))


def _growth(context: ControllerContext, topic: NewPartitions, marked: frozenset[str]) -> Step:
    """Return the step that adds partitions to a topic, conditional on the known version (KAFKA-9038)."""
    name = topic.name
    known = context.topics.get(name)
    if known is None or not known.znode.partitions:
        raise ApiError(*unknown_topic(name))
    if name in marked or name in context.deletions:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name} is being deleted")
    partitions = known.znode.partitions
    moving = [number for number, assignment in partitions.items() if assignment.is_being_reassigned]
    if moving:
        text = f"partitions {moving[:5]} of topic {name} are being reassigned: wait until they are, or cancel that"
        raise ApiError(ErrorCode.REASSIGNMENT_IN_PROGRESS, text)
    added = _added(context, topic, partitions)
    znode = evolve(known.znode, partitions={**partitions, **added})
    write = Set(paths.topic(name), _encode(context, znode), known.version)
    subjects = tuple(TopicPartition(name, number) for number in added)
    return Step(subjects, writes=(write,), facts=(TopicWritten(name, znode, known.version + 1),))


def _added(context: ControllerContext, topic: NewPartitions, partitions: Assignments) -> Assignments:
    """Return the assignment of the added partitions: as requested, or placed so that the rotation continues."""
    first = max(partitions) + 1
    more = topic.count - len(partitions)
    if more <= 0:
        now = f"{len(partitions)} partition{'' if len(partitions) == 1 else 's'}"
        text = f"topic {topic.name} has {now}: ask for more than that, not for {topic.count}"
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
    if first != len(partitions):
        text = f"the partitions of topic {topic.name} have gaps: its znode must be repaired first"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    replicas = partitions[0].replicas
    if not topic.assignments:
        start = next_start(_racks(context), replicas)
        return _dealt(context, range(first, topic.count), len(replicas), start)
    if len(topic.assignments) != more:
        text = f"give replicas for each partition that is to be added: for {more}, not for {len(topic.assignments)}"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return _as_asked(context, topic.assignments, first, len(replicas))
