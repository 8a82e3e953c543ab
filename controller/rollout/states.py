"""The states of a rollout and of its moves, and what changes them: as tables.

A rollout has a phase, and holds. In the phases RUNNING and UNDOING moves begin, unless there is a hold: then it is
paused. An operator's hold, and the one after an interval under a foreign controller, stay until the operator resumes;
a brake lets go by itself.

    RUNNING --all moves are over--> DONE
    RUNNING --abort--> ABORTING --nothing is in flight--> ABORTED
    any of these but ABORTING --undo--> ABORTING_TO_UNDO --nothing is in flight--> UNDOING --all is back--> UNDONE

A move ends as DONE; as OVERRIDDEN, if somebody else moved the partition; as SKIPPED, if it was left out; as FAILED, if
it cannot be made; as DELETED, if its topic was deleted; or as BACK, if it was undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from attrs import evolve, frozen


class Phase(Enum):
    """The phases of a rollout."""

    RUNNING = "running"
    DONE = "done"
    ABORTING = "aborting"
    ABORTED = "aborted"
    ABORTING_TO_UNDO = "aborting to undo"
    UNDOING = "undoing"
    UNDONE = "undone"


class HeldBy(Enum):
    """The causes of a pause."""

    OPERATOR = "operator"
    BRAKE = "brake"
    FOREIGN_CONTROLLER = "foreign controller"


class Happening(Enum):
    """The happenings that change a rollout."""

    PAUSE = "pause"
    RESUME = "resume"
    BRAKE = "brake"
    RELEASE = "release"
    FOREIGN_CONTROLLER = "foreign controller"
    ABORT = "abort"
    UNDO = "undo"
    LANDED = "landed"
    """Nothing is in flight any more."""

    FINISHED = "finished"
    """No move is left to begin, and nothing is in flight."""


class MoveState(Enum):
    """The states of a move."""

    PENDING = "pending"
    IN_FLIGHT = "in flight"
    DONE = "done"
    OVERRIDDEN = "overridden"
    SKIPPED = "skipped"
    FAILED = "failed"
    GOING_BACK = "going back"
    BACK = "back"
    DELETED = "deleted"


@frozen
class Direction:
    """The states of moves in one direction."""

    pending: MoveState
    in_flight: MoveState
    ended: MoveState


FORTH: Final = Direction(MoveState.PENDING, MoveState.IN_FLIGHT, MoveState.DONE)
BACK: Final = Direction(MoveState.DONE, MoveState.GOING_BACK, MoveState.BACK)


PHASES: Final[Mapping[Phase, Mapping[Happening, Phase]]] = MappingProxyType(
    {
        Phase.RUNNING: {
            Happening.ABORT: Phase.ABORTING,
            Happening.UNDO: Phase.ABORTING_TO_UNDO,
            Happening.FINISHED: Phase.DONE,
        },
        Phase.DONE: {Happening.UNDO: Phase.ABORTING_TO_UNDO},
        Phase.ABORTING: {Happening.UNDO: Phase.ABORTING_TO_UNDO, Happening.LANDED: Phase.ABORTED},
        Phase.ABORTED: {Happening.UNDO: Phase.ABORTING_TO_UNDO},
        Phase.ABORTING_TO_UNDO: {Happening.LANDED: Phase.UNDOING},
        Phase.UNDOING: {Happening.FINISHED: Phase.UNDONE},
        Phase.UNDONE: {Happening.UNDO: Phase.ABORTING_TO_UNDO},
    }
)
"""The phase after each happening; what is missing changes no phase."""

HOLDS: Final[Mapping[Happening, tuple[frozenset[HeldBy], frozenset[HeldBy]]]] = MappingProxyType(
    {
        Happening.PAUSE: (frozenset({HeldBy.OPERATOR}), frozenset()),
        Happening.BRAKE: (frozenset({HeldBy.BRAKE}), frozenset()),
        Happening.FOREIGN_CONTROLLER: (frozenset({HeldBy.FOREIGN_CONTROLLER}), frozenset()),
        Happening.RESUME: (frozenset(), frozenset({HeldBy.OPERATOR, HeldBy.FOREIGN_CONTROLLER})),
        Happening.RELEASE: (frozenset(), frozenset({HeldBy.BRAKE})),
        Happening.ABORT: (frozenset(), frozenset(HeldBy)),
        Happening.UNDO: (frozenset(), frozenset(HeldBy)),
    }
)
"""The holds that each happening adds, and those that it takes away."""

GIVEN: Final[Mapping[Happening, frozenset[Phase]]] = MappingProxyType(
    {
        Happening.ABORT: frozenset({Phase.ABORTING, Phase.ABORTED}),
        Happening.UNDO: frozenset({Phase.ABORTING_TO_UNDO, Phase.UNDOING}),
    }
)
"""The phases in which an order has been given already, so that it may be repeated: an answer may have been lost."""

_LOST: Final = frozenset({MoveState.OVERRIDDEN, MoveState.FAILED, MoveState.DELETED})
"""The ends of a move that come from outside, wherever it is."""

MOVES: Final[Mapping[MoveState, frozenset[MoveState]]] = MappingProxyType(
    {
        MoveState.PENDING: _LOST | {MoveState.IN_FLIGHT, MoveState.DONE, MoveState.SKIPPED},
        MoveState.IN_FLIGHT: _LOST | {MoveState.DONE, MoveState.PENDING},
        MoveState.DONE: _LOST | {MoveState.GOING_BACK, MoveState.BACK},
        MoveState.GOING_BACK: _LOST | {MoveState.BACK, MoveState.DONE},
        MoveState.OVERRIDDEN: frozenset(),
        MoveState.SKIPPED: frozenset(),
        MoveState.FAILED: frozenset({MoveState.PENDING}),
        MoveState.BACK: frozenset(),
        MoveState.DELETED: frozenset(),
    }
)
"""The states that may follow each state of a move."""


@frozen
class RolloutState:
    """The state of a rollout."""

    phase: Phase = Phase.RUNNING
    holds: frozenset[HeldBy] = frozenset()

    @property
    def is_paused(self) -> bool:
        """Whether it would begin moves but for a hold."""
        return self.phase in {Phase.RUNNING, Phase.UNDOING} and bool(self.holds)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and only an operator changes it."""
        return self.phase in {Phase.DONE, Phase.ABORTED, Phase.UNDONE}

    def after(self, happening: Happening) -> RolloutState:
        """Return the state after something has happened."""
        gained, lost = HOLDS.get(happening, (frozenset(), frozenset()))
        phase = PHASES[self.phase].get(happening, self.phase)
        refused = happening in {Happening.ABORT, Happening.UNDO} and phase is self.phase
        return self if refused else evolve(self, phase=phase, holds=(self.holds | gained) - lost)

    def allows(self, order: Happening) -> bool:
        """Return whether an operator may give an order; one that changes nothing may be repeated."""
        is_new = self.after(order).phase is not self.phase
        return is_new or self.phase in GIVEN.get(order, frozenset(Phase))

    def __str__(self) -> str:
        """Return the state in words."""
        if not self.is_paused:
            return self.phase.value
        by = ", ".join(sorted(hold.value for hold in self.holds))
        return f"paused by {by}" if self.phase is Phase.RUNNING else f"{self.phase.value}, paused by {by}"
