"""The cluster as a rollout sees it, besides its own moves: leaders, room, moves of others, brakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import trio
from attrs import define, evolve, field

from controller.admin.disks import disks_of
from controller.admin.move_admin import MoveAdmin
from controller.rollout.choosing import Hold, Standing
from controller.rollout.moves import Move
from controller.rollout.room import Places
from klamm.cli.rollout.brakes import LOOK_SECONDS, Brakes, foreign_hold
from transport.messages import MetadataResponse, PartitionState
from transport.metadata import LEADER_DURING_DELETE, NO_LEADER, TopicPartition

ROOM_SECONDS: Final = 15.0


@define
class Surroundings:
    """The cluster as it was a few seconds ago. `moves` are those of the plan."""

    admin: MoveAdmin
    moves: Collection[Move]
    brakes: Brakes
    checks_room: bool
    live: frozenset[int] = frozenset()
    hold: Hold | None = None
    """Why nothing begins for now, but for the operator's own holds."""

    unthrottled: dict[int | str, str] = field(factory=dict)
    """The live brokers and topics that could not be throttled since the last look, and why."""

    lagging: frozenset[TopicPartition] = frozenset()
    """The partitions that lack replicas although the brokers of these are alive."""

    gone_topics: frozenset[str] = frozenset()
    """The topics of moves that neither this look nor the one before has found: a broker that starts knows none yet."""

    _missing: frozenset[str] = frozenset()
    _found: MetadataResponse | None = None
    _standing: Standing = field(factory=Standing)
    _next_look: float = float("-inf")
    _next_room: float = float("-inf")

    @property
    def urgent(self) -> Collection[TopicPartition]:
        """The partitions that lack replicas."""
        return self._standing.urgent

    async def look(self, foreign: Collection[TopicPartition], at_start: Collection[int]) -> bool:
        """Look around if it is time; return whether it was. `foreign` are partitions that others move."""
        is_due = trio.current_time() >= self._next_look
        if is_due:
            self._found = await self.admin.read_metadata()
            self._see(self._found)
            self._next_look = trio.current_time() + LOOK_SECONDS
        self.brakes.at_start = at_start
        assert self._found is not None
        self.hold = await self.brakes.look(self._found) or foreign_hold(foreign)
        return is_due

    async def look_at_room(self, receiving: Collection[int], in_flight: Iterable[Move]) -> None:
        """Ask the brokers that are to receive replicas for their room; what is in flight has its own already."""
        now = trio.current_time()
        if now < self._next_room or not receiving or not self.checks_room:
            return
        self._next_room = now + ROOM_SECONDS
        told = await self.admin.describe_log_dirs(sorted(receiving))
        self._standing = evolve(self._standing, disks=disks_of(told), taken=tuple(in_flight))

    def use_room(self, moves: Iterable[Move]) -> None:
        """Note that moves begin."""
        self._standing = evolve(self._standing, taken=(*self._standing.taken, *moves))

    def standing(self, paused_by: Iterable[str], to: Places) -> Standing:
        """Return what matters to the choice of the next moves; an operator's hold comes before others.

        `to` has the directories that are named for new replicas.
        """
        paused = ", ".join(sorted(paused_by))
        hold = Hold(f"paused by {paused}") if paused else self.hold
        return evolve(self._standing, to=to, unthrottled=self.unthrottled, hold=hold)

    def _see(self, found: MetadataResponse) -> None:
        states: Mapping[TopicPartition, PartitionState] = {state.tp: state for state in found.partitions}
        self.unthrottled = {}
        self.live = frozenset(broker.id for broker in found.brokers)
        self.lagging = frozenset(tp for tp, state in states.items() if _lags(state, self.live))
        there = {state.topic for state in found.partitions if state.leader != LEADER_DURING_DELETE}
        missing = frozenset(move.topic for move in self.moves) - there
        self.gone_topics, self._missing = missing & self._missing, missing
        named = {broker for move in self.moves for broker in (*move.before, *move.after)}
        self._standing = evolve(
            self._standing,
            leaders={move.tp: states[move.tp].leader for move in self.moves if move.tp in states},
            led=Counter(state.leader for state in states.values() if state.leader != NO_LEADER),
            dead=named - self.live,
            urgent={tp for tp, state in states.items() if state.is_under_replicated},
        )


def _lags(state: PartitionState, live: frozenset[int]) -> bool:
    return state.is_under_replicated and set(state.origin_replicas) <= live
