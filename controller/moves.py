"""Following reassignments from outside, until each is over: what `reassignment execute` waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final

import trio
from attrs import define, field, frozen

from controller.move_admin import MoveAdmin
from transport.messages import UNKNOWN, UNTHROTTLED, OngoingReassignment, ReassignmentDescription, ReplicaProgress
from transport.metadata import TopicPartition

POLL_SECONDS: Final = 0.2
_POLL_SHARE: Final = 5
"""How many times as long as an answer took nothing is asked: thousands of moves are not to keep the controller busy."""

Targets = Mapping[TopicPartition, tuple[int, ...]]
Sample = tuple[int, int]
"""How many bytes of how many a replica has."""


@frozen
class MoveStatus:
    """Where a set of moves is. Sizes are in bytes; `to_copy` is what all of them have copied when they are over.

    `ended` says which replicas those have that are over, whatever became of them, none if the partition is gone.
    `fallen` names what has been copied and is to be copied again.
    """

    targets: Targets
    ended: Mapping[TopicPartition, tuple[int, ...]]
    ongoing: tuple[ReassignmentDescription, ...]
    copied: int
    to_copy: int
    fallen: tuple[str, ...] = ()

    @property
    def rate(self) -> int:
        """How many bytes per second are copied now, UNKNOWN if nobody can tell."""
        return _sum([move.rate for move in self.ongoing])

    @property
    def eta_ms(self) -> int:
        """How long what is left takes at this rate, in ms; UNKNOWN while nothing comes."""
        return (self.to_copy - self.copied) * 1000 // self.rate if self.rate > 0 else UNKNOWN

    @property
    def stalled(self) -> tuple[ReassignmentDescription, ...]:
        """The moves that get nothing though something has to come."""
        return tuple(move for move in self.ongoing if move.stalled_since_ms != UNKNOWN)


def partition_of(move: ReassignmentDescription) -> TopicPartition:
    """Return which partition a description is of."""
    return TopicPartition(move.topic, move.partition)


def waits_for(move: ReassignmentDescription) -> str:
    """Say what a move waits for, in the controller's words if it has any."""
    if move.waits_for:
        return move.waits_for
    missing = [item.broker for item in move.progress if not item.in_sync]
    return f"{', '.join(map(str, missing))} to join the ISR" if missing else "the controller to finish it"


async def describe(
    admin: MoveAdmin, partitions: Collection[TopicPartition] | None = None
) -> tuple[ReassignmentDescription, ...]:
    """Return what goes on, of all partitions or of those named."""
    ongoing = await admin.list_partition_reassignments(None if partitions is None else list(partitions))
    return tuple(_described(move) for move in ongoing)


def _described(move: OngoingReassignment) -> ReassignmentDescription:
    new = tuple(r for r in move.replicas if r not in move.removing_replicas)
    return ReassignmentDescription(
        move.topic,
        move.partition,
        UNKNOWN,
        UNKNOWN,
        move.leader,
        UNTHROTTLED,
        move.replicas,
        move.adding_replicas,
        move.removing_replicas,
        move.isr,
        new,
        tuple(ReplicaProgress(broker, in_sync=broker in move.isr) for broker in new),
    )


@define
class MoveWatch:
    """Follows moves from one look to the next; what is over once is over, whatever becomes of the partition later."""

    admin: MoveAdmin
    targets: Targets
    _ended: dict[TopicPartition, tuple[int, ...]] = field(factory=dict)
    _samples: dict[TopicPartition, dict[int, Sample]] = field(factory=dict)

    async def look(self) -> MoveStatus:
        """Ask where the moves are."""
        left = [tp for tp in self.targets if tp not in self._ended]
        ongoing = {partition_of(move): move for move in await describe(self.admin, left)} if left else {}
        over = [tp for tp in left if tp not in ongoing]
        if over:
            self._ended |= await self._settled(over)
        fallen = [line for move in ongoing.values() for line in self._sample(move)]
        copied, to_copy = self._bytes()
        ended = {tp: self._ended[tp] for tp in self.targets if tp in self._ended}
        return MoveStatus(self.targets, ended, tuple(ongoing.values()), copied, to_copy, tuple(fallen))

    async def follow(self) -> AsyncIterator[MoveStatus]:
        """Yield the status again and again until nothing goes on."""
        while True:
            asked = trio.current_time()
            status = await self.look()
            took = trio.current_time() - asked
            yield status
            if len(status.ended) == len(self.targets):
                return
            await trio.sleep(max(POLL_SECONDS, _POLL_SHARE * took))

    async def _settled(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the replicas of those that do not move; one may have begun to since it was asked for."""
        names = list(dict.fromkeys(tp.topic for tp in partitions))
        states = (await self.admin.describe_cluster(names)).partitions
        found = {TopicPartition(state.topic, state.partition): state for state in states}
        moving = {tp for tp, state in found.items() if state.adding_replicas or state.removing_replicas}
        return {tp: found[tp].replicas if tp in found else () for tp in partitions if tp not in moving}

    def _sample(self, move: ReassignmentDescription) -> list[str]:
        """Remember what a move has copied; return what it had copied and has not any more."""
        tp = partition_of(move)
        before = self._samples.get(tp, {})
        adding = [item for item in move.progress if item.broker in move.adding_replicas]
        self._samples[tp] = now = {item.broker: _sample_of(item, before.get(item.broker, (0, 0))) for item in adding}
        return [
            f"{tp}: broker {broker} has {copied:,} bytes of it, and had {before[broker][0]:,}: it copies again"
            for broker, (copied, of) in now.items()
            if broker in before and copied < min(before[broker][0], of)
        ]

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
