"""Following reassignments from outside until all have ended, as `reassignment execute` does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final

import trio
from attrs import define, evolve, field, frozen

from controller.admin.active_controller import ClusterUnreachable
from controller.admin.move_admin import MoveAdmin
from controller.admin.reassignments import ReassignmentDescriptions
from transport.messages import UNKNOWN, ReassignmentDescription, ReplicaProgress
from transport.metadata import TopicPartition
from transport.store.protocol import StoreError
from transport.wire import WireError

POLL_SECONDS: Final = 0.2
_POLL_SHARE: Final = 5
"""The pause as a multiple of the answer time, so that following many moves does not keep the controller busy."""

_LONGEST_PAUSE: Final = 2.0
"""The limit of the pause, as an answer may also have taken long because the controller was replaced meanwhile."""

CANNOT_SEE: Final = (ClusterUnreachable, StoreError, WireError)
"""The errors that `look` raises while no controller answers."""

Targets = Mapping[TopicPartition, tuple[int, ...]]
Sample = tuple[int, int]
"""The bytes that a replica has, and the bytes that it needs."""


@frozen
class MoveStatus:
    """The status of a set of moves. Sizes are in bytes; `to_copy` is the total that all moves together must copy.

    `ended` has the replicas of each partition whose move has ended in any way, () if the partition was deleted.
    `rate`, in bytes per second, and `eta_ms` are UNKNOWN while nothing is copied. `setbacks` give, once each, the
    reasons why less is copied than before.
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
    """The reason why this status is out of date, "" if it is current."""

    @property
    def stalled(self) -> tuple[ReassignmentDescription, ...]:
        """The moves that make no progress."""
        return tuple(move for move in self.ongoing if move.stalled_since_ms != UNKNOWN)


def waits_for(move: ReassignmentDescription) -> str:
    """Return what a move waits for, in the controller's words if it gives any."""
    if move.waits_for:
        return move.waits_for
    missing = [str(item.broker) for item in move.progress if not item.in_sync]
    if not missing:
        return "the controller to finish it"
    return f"broker{'s' if len(missing) > 1 else ''} {', '.join(missing)} to join the ISR"


@define
class MoveWatch:
    """Follows moves from one look to the next; an ended move stays ended, whatever happens to the partition later."""

    admin: MoveAdmin
    targets: Targets
    _ended: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    _samples: dict[TopicPartition, dict[int, Sample]] = field(factory=dict)
    _setbacks: dict[TopicPartition, str] = field(factory=dict)
    _last: MoveStatus | None = None

    async def look(self) -> MoveStatus:
        """Ask for the progress of the moves, and return their status."""
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
            # Other partitions are moving too, so the controller's totals do not apply to these moves.
            rate = _sum([move.rate for move in ongoing])
            eta_ms = (to_copy - copied) * 1000 // rate if rate > 0 else UNKNOWN
        ended = {tp: self._ended[tp] for tp in self.targets if tp in self._ended}
        self._last = MoveStatus(self.targets, ended, ongoing, copied, to_copy, rate, eta_ms, setbacks)
        return self._last

    def recall(self, trouble: str) -> MoveStatus:
        """Return the last status, with the trouble that prevents a current one."""
        return evolve(self._last or MoveStatus(self.targets, {}, ()), trouble=trouble, setbacks=())

    async def follow(self) -> AsyncIterator[MoveStatus]:
        """Yield the status repeatedly until all moves have ended.

        While no controller answers, it is the last status with the trouble: the moves continue unobserved.
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
        """Return the replicas of the partitions that are not moving; a new move may have begun since `look` asked."""
        names = list(dict.fromkeys(tp.topic for tp in partitions))
        states = (await self.admin.read_metadata(names)).partitions
        found = {state.tp: state for state in states}
        moving = {tp for tp, state in found.items() if state.is_being_reassigned}
        return {tp: found[tp].replicas if tp in found else () for tp in partitions if tp not in moving}

    def _remember(self, move: ReassignmentDescription) -> list[str]:
        """Record what a move has copied; return the reason if it is less than before, unless already reported."""
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
    """Return a replica's sample; values that are unknown at the moment keep their earlier ones."""
    of = before[1] if item.leader_bytes == UNKNOWN else item.leader_bytes
    if item.in_sync:
        return of, of
    return (before[0] if item.log_bytes == UNKNOWN else min(item.log_bytes, of)), of


def _sum(rates: Collection[int]) -> int:
    known = [rate for rate in rates if rate != UNKNOWN]
    return sum(known) if known else UNKNOWN
