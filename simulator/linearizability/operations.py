"""The operations of the models for administrators' requests and their answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from simulator.linearizability import partition, settings, topic
from simulator.linearizability.history import Operations
from simulator.linearizability.partition import Doom
from simulator.linearizability.settings import ModelSettings
from simulator.linearizability.topic import ModelTopic
from transport.errors import ErrorCode
from transport.messages import (
    ElectionType,
    NewTopic,
    OngoingReassignment,
    PartitionError,
    PartitionState,
    ReassignablePartition,
    ReassignmentDescription,
    ResourceConfigs,
    ResourceError,
    TopicError,
)
from transport.metadata import LEADER_DURING_DELETE, TopicPartition

Move = OngoingReassignment | ReassignmentDescription
"""A reassignment in progress, as one of two apis shows it."""

_OF_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
"""The source of a value that the topic itself has."""


def creation(new: NewTopic, error: ErrorCode = ErrorCode.NONE) -> Operations:
    """Return the creation of a topic."""
    return Operations({new.name: topic.Create(new.assignments or (None,) * new.partitions, error)})


def growth(name: str, count: int, error: ErrorCode = ErrorCode.NONE) -> Operations:
    """Return the growth of a topic to so many partitions."""
    return Operations({name: topic.Grow(count, error)})


def creations_checked(asked: Iterable[NewTopic], answered: Iterable[TopicError]) -> Operations:
    """Return requests that only ask whether topics could be created, with their answers."""
    rows = {new.name: new.assignments or (None,) * new.partitions for new in asked}
    checks = {item.name: topic.Create(rows[item.name], item.error, validate_only=True) for item in answered}
    return Operations(checks)


def growth_checked(asked: Mapping[str, int], answered: Iterable[TopicError]) -> Operations:
    """Return requests that only ask whether topics could grow, with their answers."""
    return Operations({item.name: topic.Grow(asked[item.name], item.error, validate_only=True) for item in answered})


def deletions(names: Iterable[str]) -> Operations:
    """Return the deletion of topics."""
    return Operations({name: topic.Delete() for name in names})


def deletions_answered(answered: Iterable[TopicError]) -> Operations:
    """Return the deletion of topics with their answers."""
    return Operations({item.name: topic.Delete(item.error) for item in answered})


def moves(asked: Iterable[ReassignablePartition]) -> Operations:
    """Return the moves, overrides and cancels of a request."""
    return Operations(partitions={item.tp: partition.Reassign(item.replicas) for item in asked})


def moves_answered(asked: Iterable[ReassignablePartition], answered: Iterable[PartitionError]) -> Operations:
    """Return the same with their answers."""
    targets = {item.tp: item.replicas for item in asked}
    return Operations(partitions={item.tp: partition.Reassign(targets[item.tp], item.error) for item in answered})


def orders(asked: Mapping[TopicPartition, tuple[int, ...]]) -> Operations:
    """Return the elections that put replicas into a new order; others change nothing of what is recorded."""
    elections = {tp: partition.Elect(ElectionType.PREFERRED, order) for tp, order in asked.items()}
    return Operations(partitions=elections)


def elections(
    kind: ElectionType, asked: Mapping[TopicPartition, tuple[int, ...]], answered: Iterable[PartitionError]
) -> Operations:
    """Return elections with their answers; `asked` are the orders of the request."""
    return Operations(partitions={item.tp: partition.Elect(kind, asked.get(item.tp), item.error) for item in answered})


def alterations(asked: Mapping[str, Mapping[str, str | None]]) -> Operations:
    """Return new settings of topics, or of all brokers."""
    return Operations(settings={name: settings.Alter(tuple(values.items())) for name, values in asked.items()})


def alterations_answered(
    asked: Mapping[str, Mapping[str, str | None]], answered: Iterable[ResourceError], *, validate_only: bool = False
) -> Operations:
    """Return the same with their answers, or requests that only ask whether settings could be altered."""
    found = {item.resource.name: item.error for item in answered}
    altered = {
        name: settings.Alter(tuple(asked[name].items()), error, settings.are_valid(name, asked[name]), validate_only)
        for name, error in found.items()
    }
    return Operations(settings=altered)


def listed(
    known: Iterable[TopicPartition], moving: Iterable[OngoingReassignment | ReassignmentDescription]
) -> Operations:
    """Return what a list of all reassignments in progress says of the partitions `known` before, and of those in it."""
    shown: dict[TopicPartition, Move | None] = dict.fromkeys(known)
    shown |= {move.tp: move for move in moving}
    return Operations(partitions={tp: partition.List(move) for tp, move in shown.items()})


def described(topics: Iterable[str], known: Iterable[TopicPartition], states: Iterable[PartitionState]) -> Operations:
    """Return what a description of all topics says of what was `known` before, and of what is in it."""
    shown: dict[TopicPartition, PartitionState | None] = dict.fromkeys(known)
    shown |= {state.tp: state for state in states}
    found: defaultdict[str, list[PartitionState]] = defaultdict(list)
    for state in states:
        found[state.topic].append(state)
    names = dict.fromkeys([*topics, *found])
    return Operations(
        {name: topic.Describe(_model_topic(found.get(name, ()))) for name in names},
        {tp: partition.Describe(None if state is None else _model(state)) for tp, state in shown.items()},
    )


def settings_described(resources: Iterable[ResourceConfigs]) -> Operations:
    """Return what a description says of the settings that topics have set."""
    sound = [resource for resource in resources if resource.error is ErrorCode.NONE]
    return Operations(settings={each.resource.name: settings.Describe(_model_settings(each)) for each in sound})


def _model_topic(states: Sequence[PartitionState]) -> ModelTopic | None:
    if not states:
        return None
    doom = Doom.GRANTED if states[0].leader == LEADER_DURING_DELETE else Doom.NONE
    return ModelTopic(exists=True, topic_id=states[0].topic_id or None, doom=doom, count=len(states))


def _model(state: PartitionState) -> partition.ModelPartition:
    return partition.of(state, leader=state.leader, topic_id=state.topic_id or None)


def _model_settings(described: ResourceConfigs) -> ModelSettings:
    return settings.of({entry.name: entry.value for entry in described.entries if entry.source == _OF_TOPIC})
