"""Following reassignments from outside, until each is over: what `reassignment execute` waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final

import trio
from attrs import define, evolve, field, frozen

from controller.admin.client import ClusterUnreachable
from controller.admin.move_admin import MoveAdmin
from controller.admin.reassignments import ReassignmentDescriptions
from transport.messages import UNKNOWN, ReassignmentDescription, ReplicaProgress
from transport.metadata import TopicPartition
from transport.store.protocol import StoreError
from transport.wire import WireError

POLL_SECONDS: Final = 0.2
_POLL_SHARE: Final = 5
"""How many times as long as an answer took nothing is asked: thousands of moves are not to keep the controller busy."""

_LONGEST_PAUSE: Final = 2.0
"""An answer may also have taken long because a controller was replaced meanwhile."""

CANNOT_SEE: Final = (ClusterUnreachable, StoreError, WireError)
"""What a look raises while nobody answers."""

Targets = Mapping[TopicPartition, tuple[int, ...]]
Sample = tuple[int, int]
"""How many bytes of how many a replica has."""


@frozen
class MoveStatus:
    """Where a set of moves is. Sizes are in bytes; `to_copy` is what all of them have copied when they are over.

    `ended` says which replicas those have that are over, whatever became of them, none if the partition is gone.
    `rate`, in bytes per second, and `eta_ms` are UNKNOWN while nothing comes. `setbacks` say, once each, why less is
    copied than was before.
    """

    targets: Targets
    ended: Mapping[TopicPartition, tuple[int, ...]]
    ongoing: tuple[ReassignmentDescription, ...]
    copied: int = 0
    to_copy: int = 0
    rate: int = UNKNOWN
    eta_ms: int = UNKNOWN
    setbacks: tuple[str, ...] = ()
    trouble: str = ""
    """Why this is not how it is now."""

    @property
    def stalled(self) -> tuple[ReassignmentDescription, ...]:
        """The moves that get nothing though something has to come."""
        return tuple(move for move in self.ongoing if move.stalled_since_ms != UNKNOWN)


def waits_for(move: ReassignmentDescription) -> str:
    """Say what a move waits for, in the controller's words if it has any."""
    if move.waits_for:
        return move.waits_for
    missing = [str(item.broker) for item in move.progress if not item.in_sync]
    if not missing:
        return "the controller to finish it"
    return f"broker{'s' if len(missing) > 1 else ''} {', '.join(missing)} to join the ISR"


@define
class MoveWatch:
    """Follows moves from one look to the next; what is over once is over, whatever becomes of the partition later."""

    admin: MoveAdmin
    targets: Targets
    _ended: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    _samples: dict[TopicPartition, dict[int, Sample]] = field(factory=dict)
    _setbacks: dict[TopicPartition, str] = field(factory=dict)
    _last: MoveStatus | None = None

    async def look(self) -> MoveStatus:
        """Ask where the moves are."""
        left = [tp for tp in self.targets if tp not in self._ended]
        found = await self.admin.describe_reassignments() if left else ReassignmentDescriptions({})
        moving = {move.tp: move for move in found.values()}
        over = [tp for tp in left if tp not in moving]
        if over:
            self._ended |= await self._settled(over)
        ongoing = tuple(moving[tp] for tp in left if tp in moving)
        setbacks = tuple(line for move in ongoing for line in self._remember(move))
        copied, to_copy = self._bytes()
        rate, eta_ms = found.rate, found.eta_ms
        if len(ongoing) < len(moving):
            # Others move, too: what the controller says of all together does not hold for these.
            rate = _sum([move.rate for move in ongoing])
            eta_ms = (to_copy - copied) * 1000 // rate if rate > 0 else UNKNOWN
        ended = {tp: self._ended[tp] for tp in self.targets if tp in self._ended}
        self._last = MoveStatus(self.targets, ended, ongoing, copied, to_copy, rate, eta_ms, setbacks)
        return self._last

    def recall(self, trouble: str) -> MoveStatus:
        """Return what was seen last, with the trouble that keeps it from being seen now."""
        return evolve(self._last or MoveStatus(self.targets, {}, ()), trouble=trouble, setbacks=())

    async def follow(self) -> AsyncIterator[MoveStatus]:
        """Yield the status again and again until nothing goes on.

        While nobody answers, it is the last one with the trouble that there is: moves go on, whoever looks.
        """
        is_over = False
        while not is_over:
            asked = trio.current_time()
            try:
                status = await self.look()
            except CANNOT_SEE as error:
                status = self.recall(str(error))
            took = trio.current_time() - asked
            yield status
            is_over = len(status.ended) == len(self.targets)
            if not is_over:
                await trio.sleep(min(max(POLL_SECONDS, _POLL_SHARE * took), _LONGEST_PAUSE))

    async def _settled(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the replicas of those that do not move; one may have begun to since it was asked for."""
        names = list(dict.fromkeys(tp.topic for tp in partitions))
        states = (await self.admin.read_metadata(names)).partitions
        found = {state.tp: state for state in states}
        moving = {tp for tp, state in found.items() if state.adding_replicas or state.removing_replicas}
        return {tp: found[tp].replicas if tp in found else () for tp in partitions if tp not in moving}

    def _remember(self, move: ReassignmentDescription) -> list[str]:
        """Remember what a move has copied; return why it has less than before, unless that is known."""
        tp = move.tp
        before = self._samples.get(tp, {})
        adding = [item for item in move.progress if item.broker in move.adding_replicas]
        self._samples[tp] = {item.broker: _sample_of(item, before.get(item.broker, (0, 0))) for item in adding}
        known = self._setbacks.get(tp, move.setback)
        self._setbacks[tp] = move.setback
        return [f"{tp} has to copy again: {move.setback}"] if move.setback != known else []

    def _bytes(self) -> Sample:
        copied = to_copy = 0
        for tp, samples in self._samples.items():
            for has, of in samples.values():
                copied += of if tp in self._ended else has
                to_copy += of
        return copied, to_copy


def _sample_of(item: ReplicaProgress, before: Sample) -> Sample:
    """Return what a replica has; what nobody can tell at the moment is as it was."""
    of = before[1] if item.leader_bytes == UNKNOWN else item.leader_bytes
    if item.in_sync:
        return of, of
    return (before[0] if item.log_bytes == UNKNOWN else min(item.log_bytes, of)), of


def _sum(rates: Collection[int]) -> int:
    known = [rate for rate in rates if rate != UNKNOWN]
    return sum(known) if known else UNKNOWN
