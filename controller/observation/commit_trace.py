"""The commit trace: the controller's commits, for subscribers over the wire."""

from __future__ import annotations

from collections import deque
from typing import Final

import trio
from attrs import define, field, frozen

from controller.observation.observer import CommittedRound, Observer
from transport.messages import CommitTraceResponse, TracedCommit
from transport.wire import decode, encode

CAPACITY: Final = 10_000
MAX_PARTITIONS: Final = 20_000
"""The most partition states that the kept commits may contain in total: some commits have hundreds."""


@frozen
class _Kept:
    """A commit, packed: thousands of small objects among those of large events would keep their memory from others."""

    sequence: int
    partitions: int
    packed: bytes


@define
class CommitTrace(Observer):
    """An observer that keeps the latest commits and lets readers wait for the next one."""

    controller_id: int
    _commits: deque[_Kept] = field(factory=deque, init=False)
    _partitions: int = field(default=0, init=False)
    _next: int = field(default=0, init=False)
    _grown: trio.Event = field(factory=trio.Event, init=False)

    def committed(self, commit: CommittedRound) -> None:
        """Keep a commit and wake the readers."""
        traced = TracedCommit(
            self._next,
            self.controller_id,
            commit.controller_epoch,
            commit.event,
            commit.round,
            commit.zxid,
            commit.topic_versions,
            commit.partitions,
            commit.event_id,
        )
        self._commits.append(_Kept(self._next, len(commit.partitions), encode(traced)))
        self._partitions += len(commit.partitions)
        while len(self._commits) > CAPACITY or (self._partitions > MAX_PARTITIONS and len(self._commits) > 1):
            self._partitions -= self._commits.popleft().partitions
        self._next += 1
        self._grown.set()
        self._grown = trio.Event()

    async def read(self, sequence: int, max_wait: float) -> CommitTraceResponse:
        """Return the commits from number `sequence` on, waiting up to `max_wait` seconds if there is none yet."""
        if sequence >= self._next:
            with trio.move_on_after(max_wait):
                await self._grown.wait()
        wanted = [kept.packed for kept in self._commits if kept.sequence >= sequence]
        return CommitTraceResponse(self._next, tuple([decode(TracedCommit, packed) for packed in wanted]))
