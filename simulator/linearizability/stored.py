"""The rows of the store that administrators see, as states of the models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from attrs import define, field

from simulator.linearizability import partition, settings
from simulator.linearizability.partition import Doom, ModelPartition
from simulator.linearizability.settings import ModelSettings
from simulator.linearizability.topic import ModelTopic
from simulator.store.durable import Durable
from transport.metadata import NO_LEADER, ReplicaAssignment, TopicPartition, number_in
from transport.store import formats, paths
from transport.store.protocol import Op

_OF_SETTINGS: Final = f"{paths.TOPIC_CONFIGS}/"
_OF_TOPICS: Final = (
    *(f"{parent}/" for parent in (paths.TOPICS, paths.DELETE_TOPICS, paths.REASSIGNMENTS)),
    _OF_SETTINGS,
)


@define
class Touched:
    """The parts of a topic that a commit touches: its znode or marker, the states of partitions, and its settings."""

    is_topic: bool = False
    states: set[int] = field(factory=set)
    is_settings: bool = False


def touched_by(writes: Sequence[Op]) -> dict[str, Touched]:
    """Return what a commit touches of each topic; the default settings of all brokers are those of the topic ""."""
    found: defaultdict[str, Touched] = defaultdict(Touched)
    for op in writes:
        if op.path == paths.broker_config(None):
            found[""].is_settings = True
        parent = next((parent for parent in _OF_TOPICS if op.path.startswith(parent)), None)
        if parent is None:
            continue
        match op.path.removeprefix(parent).split("/"):
            case [name] if parent == _OF_SETTINGS:
                found[name].is_settings = True
            case [name, "partitions", number, "state"] if number_in(number) is not None:
                found[name].states.add(int(number))
            case [name, "partitions", *_]:
                found[name].states |= set()
            case [name, *_]:
                found[name].is_topic = True
    return found


def topic_in(durable: Durable, name: str) -> ModelTopic:
    """Return a topic of the store."""
    znode = durable.topic(name)
    is_marked = durable.tree.read(paths.delete_topic(name)) is not None
    doom = Doom.MARKED if is_marked else Doom.NONE
    if znode is None:
        return ModelTopic(doom=doom)
    return ModelTopic(exists=True, topic_id=znode.topic_id or None, doom=doom, count=len(znode.partitions))


def partition_of(stored: ModelTopic, assignment: ReplicaAssignment | None, leader: int | None) -> ModelPartition:
    """Return a partition of a topic; absent if it has no assignment."""
    if assignment is None:
        return partition.ABSENT
    return partition.of(assignment, leader=leader, topic_id=stored.topic_id, doom=stored.doom)


def leader_in(durable: Durable, tp: TopicPartition) -> int:
    """Return the leader of a partition."""
    leadership = durable.leadership(tp)
    return NO_LEADER if leadership is None else leadership.leader


def settings_in(durable: Durable, name: str) -> ModelSettings:
    """Return the settings of a topic, or of all brokers if the name is "". Raises UndecodableZnode."""
    path = paths.topic_config(name) if name else paths.broker_config(None)
    znode = durable.tree.read(path)
    return settings.of({} if znode is None else formats.decode_config(path, znode.data))
