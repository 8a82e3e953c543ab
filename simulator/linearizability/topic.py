"""A topic as administrators see it: a sequential model, and the operations on it with their answers.

What the model cannot know is None and equals anything, as in `partition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import frozen
from msgspec.structs import replace

from simulator.linearizability import partition
from simulator.linearizability.checker import Operation
from simulator.linearizability.commits import Committed, by_commit
from simulator.linearizability.partition import Doom, ModelPartition, Replicas
from transport.errors import ErrorCode

_FEW_PARTITIONS: Final = 1_000
"""So many partitions fit into a topic's znode, whatever their replicas."""


class ModelTopic(Committed, frozen=True, cache_hash=True):
    """The state of a topic in the model."""

    exists: bool = False
    topic_id: str | None = None
    doom: Doom = Doom.NONE
    count: int | None = None
    """The number of partitions."""

    def __str__(self) -> str:
        doomed = "" if self.doom is Doom.NONE else f", {self.doom.value}"
        return f"topic {self.topic_id or '?'} of {self.count or '?'} partitions{doomed}" if self.exists else "no topic"


ABSENT: Final = ModelTopic()


def marked(state: ModelTopic) -> ModelTopic:
    """Return the topic, or the name of a missing one, after a marker was written by hand."""
    return replace(state, doom=Doom.MARKED) if state.doom is Doom.NONE else state


def drifts(state: ModelTopic) -> Iterator[ModelTopic]:
    """Yield a state and what it may become by itself: a deletion ends."""
    yield state
    yield from by_commit(state, _drifts(state))


def _drifts(state: ModelTopic) -> Iterator[ModelTopic]:
    if state.doom is not Doom.NONE:
        yield ABSENT
    if state.doom is Doom.MARKED:
        # Controllers remove the markers of missing topics.
        yield replace(state, doom=Doom.NONE)


@frozen
class Create(Operation[ModelTopic]):
    """The creation of a topic, and the answer; an unknown answer counts as success.

    Each partition has a row of replicas, or None if the controller places them.
    """

    rows: tuple[Replicas | None, ...]
    error: ErrorCode = ErrorCode.NONE
    validate_only: bool = False
    """Whether the request only asks if the topic could be created."""

    def after(self, state: ModelTopic) -> Iterable[ModelTopic]:
        """Return the new topic, or the same if the creation is refused."""
        is_taken = state.exists or state.doom is not Doom.NONE
        match self.error:
            case ErrorCode.NONE:
                new = ModelTopic(exists=True, count=len(self.rows))
                possible = [] if is_taken else [new]
                return [state] if possible and self.validate_only else by_commit(state, possible)
            case ErrorCode.TOPIC_ALREADY_EXISTS:
                return [state] if is_taken else []
        return [state]

    def __str__(self) -> str:
        what = "check" if self.validate_only else "creation"
        return f"{what} of {len(self.rows)} partitions answered {self.error.name}"


@frozen
class Delete(Operation[ModelTopic]):
    """The deletion of a topic, and the answer; an unknown answer counts as success."""

    error: ErrorCode = ErrorCode.NONE

    def after(self, state: ModelTopic) -> Iterable[ModelTopic]:
        """Return the doomed topic, or the same if the deletion is refused."""
        match self.error:
            case ErrorCode.NONE:
                return self._granted(state) if state.exists else []
            case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return [] if state.exists else [state]
        return [state]

    def _granted(self, state: ModelTopic) -> Iterable[ModelTopic]:
        granted = [replace(state, doom=Doom.GRANTED)]
        # Where there is a marker, another one is not written.
        return by_commit(state, granted) if state.doom is Doom.NONE else granted

    def __str__(self) -> str:
        return f"deletion answered {self.error.name}"


@frozen
class Grow(Operation[ModelTopic]):
    """The growth of a topic to so many partitions, and the answer; an unknown answer counts as success."""

    count: int
    error: ErrorCode = ErrorCode.NONE
    validate_only: bool = False
    """Whether the request only asks if the topic could grow."""

    def after(self, state: ModelTopic) -> Iterable[ModelTopic]:
        """Return the topic with more partitions, or the same if the growth is refused."""
        match self.error:
            case ErrorCode.NONE if state.exists and state.doom is not Doom.GRANTED and self._is_more_than(state):
                grown = replace(state, count=self.count)
                return [state] if self.validate_only else by_commit(state, [grown])
            case ErrorCode.NONE:
                return []
            case ErrorCode.INVALID_PARTITIONS:
                is_right = self.count > _FEW_PARTITIONS or (state.exists and not self._is_more_than(state))
                is_right = is_right or (state.exists and state.count is None)
            case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                is_right = not state.exists
            case ErrorCode.INVALID_TOPIC_EXCEPTION:
                is_right = state.doom is not Doom.NONE
            case _:
                is_right = True
        return [state] if is_right else []

    def _is_more_than(self, state: ModelTopic) -> bool:
        return state.count is None or self.count > state.count

    def __str__(self) -> str:
        what = "check of growth" if self.validate_only else "growth"
        return f"{what} to {self.count} partitions answered {self.error.name}"


@frozen
class Describe(Operation[ModelTopic]):
    """A description of the topic, or None if it is missing."""

    topic: ModelTopic | None

    def after(self, state: ModelTopic) -> Iterable[ModelTopic]:
        """Return the topic if it is as described."""
        if self.topic is None or not state.exists:
            return [state] if self.topic is None and not state.exists else []
        # Controllers may not know yet of a marker that others wrote.
        is_doomed = self.topic.doom is not Doom.NONE
        is_possible = state.doom is not Doom.NONE if is_doomed else state.doom is not Doom.GRANTED
        return _known(state, self.topic) if is_possible else []

    def __str__(self) -> str:
        return f"description as {self.topic or 'missing'}"


@frozen
class Stored(Operation[ModelTopic]):
    """The topic in the store right after a commit of a controller, or right before if it `checks` only."""

    topic: ModelTopic
    checks: bool = False

    def after(self, state: ModelTopic) -> Iterable[ModelTopic]:
        """Return the topic if the store has it."""
        now = self.topic
        if now.exists is not state.exists or (now.doom is Doom.NONE) is not (state.doom is Doom.NONE):
            return []
        state = replace(state, changes=int(self.checks))
        return _known(state, now) if now.exists else [state]

    def __str__(self) -> str:
        return f"the store {'still has' if self.checks else 'has'} {self.topic}"


@frozen
class Marked(Operation[ModelTopic]):
    """A marker for deletion, written by hand."""

    def after(self, state: ModelTopic) -> Iterable[ModelTopic]:
        """Return the marked topic."""
        return [marked(state)]

    def __str__(self) -> str:
        return "a marker by hand"


def on_partition(operation: Operation[ModelTopic], number: int) -> Operation[ModelPartition] | None:
    """Return what an operation on a topic does to one of its partitions; None if nothing."""
    match operation:
        case Create(rows, ErrorCode.NONE, False) if number < len(rows):
            return partition.Create(rows[number])
        case Grow(count, ErrorCode.NONE, False) if number < count:
            return partition.Grow()
        case Delete(ErrorCode.NONE):
            return partition.Delete()
    return None


def _known(state: ModelTopic, shown: ModelTopic) -> list[ModelTopic]:
    """Return the state with what an answer shows of it; nothing if the answer differs from what is known."""
    pairs = ((state.topic_id, shown.topic_id), (state.count, shown.count))
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        return []
    topic_id, count = state.topic_id or shown.topic_id, state.count or shown.count
    return [replace(state, topic_id=topic_id, count=count)]
