"""The history in the journal of a rollout: its state, and that of each of its moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from attrs import define, field

from controller.rollout.moves import Replicas
from controller.rollout.states import MOVES, Happening, MoveState, RolloutState
from klamm.cli.rollout.journal import Entry
from transport.metadata import TopicPartition

_NO_STATE = RolloutState()


@define
class History:
    """The state of a rollout, put together from the entries of its journal."""

    digest: str | None = None
    """That of the plan, None before the rollout has started."""

    cluster_id: str | None = None
    """That of the cluster, None if it does not tell."""

    started_ms: int = 0
    state: RolloutState = _NO_STATE
    brokers: frozenset[int] = frozenset()
    """Those that were alive when it was started or resumed."""

    ignores_min_isr: bool = False
    """Whether an operator has said so while it was carried out."""

    topics: dict[str, str] = field(factory=dict)
    """The ids of topics when it started."""

    moves: dict[TopicPartition, MoveState] = field(factory=dict)
    """The moves that are not pending."""

    before: dict[TopicPartition, Replicas] = field(factory=dict)
    """The replicas before each move that has begun."""

    begun: set[TopicPartition] = field(factory=set)
    """The partitions whose moves this rollout has begun."""

    why: dict[TopicPartition, str] = field(factory=dict)
    brake: str = ""
    progress: Entry = field(factory=dict)
    """The last one that was noted."""

    def take(self, entries: Iterable[Entry]) -> None:
        """Add what happened."""
        for entry in entries:
            self._take(entry)

    def state_of(self, tp: TopicPartition) -> MoveState:
        """Return the state of a move."""
        return self.moves.get(tp, MoveState.PENDING)

    def having(self, *states: MoveState) -> list[TopicPartition]:
        """Return the partitions whose moves are in one of these states, but PENDING."""
        return [tp for tp, state in self.moves.items() if state in states]

    def counts(self, total: int) -> dict[MoveState, int]:
        """Return how many moves of `total` are in each state."""
        counts = Counter(self.moves.values())
        pending = total - sum(count for state, count in counts.items() if state is not MoveState.PENDING)
        return {state: counts[state] for state in MoveState} | {MoveState.PENDING: pending}

    def _take(self, entry: Entry) -> None:
        match entry["is"]:
            case "started":
                self.digest, self.started_ms = entry["plan"], entry["at"]
                self.topics, self.cluster_id = entry["topics"], entry["cluster_id"]
                self.brokers = frozenset(entry["brokers"])
                self._started(entry)
            case "begun":
                self._begun(MoveState(entry["state"]), entry["moves"])
            case "ended":
                state = MoveState.DELETED if entry.get("deleted") else MoveState(entry["state"])
                self._ended(state, entry["moves"], entry["why"])
            case "progress":
                self.progress = entry
            case "brokers":
                self.brokers = frozenset(entry["brokers"])
            case "min_isr":
                self.ignores_min_isr = entry["ignored"]
            case "happened":
                self.state = self.state.after(Happening(entry["what"]))
                self.brake = entry.get("why", "") if entry["what"] == Happening.BRAKE.value else self.brake
            case _:
                pass  # what a later release writes

    def _started(self, entry: Entry) -> None:
        for topic, partition, before in entry["before"]:
            self.before[TopicPartition(topic, partition)] = tuple(before)
        for topic, partition, why in entry["skipped"]:
            self._ended(MoveState.SKIPPED, [(topic, partition)], why)

    def _begun(self, state: MoveState, moves: Iterable[Any]) -> None:
        for topic, partition, before in moves:
            tp = TopicPartition(topic, partition)
            self.before.setdefault(tp, tuple(before))
            self.begun.add(tp)
            self._set(tp, state)

    def _ended(self, state: MoveState, moves: Iterable[Any], why: str) -> None:
        for topic, partition in moves:
            tp = TopicPartition(topic, partition)
            self._set(tp, state)
            if why:
                self.why[tp] = why
            else:
                self.why.pop(tp, None)

    def _set(self, tp: TopicPartition, state: MoveState) -> None:
        if state is self.state_of(tp) or state in MOVES[self.state_of(tp)]:
            self.moves[tp] = state
