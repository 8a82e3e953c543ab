"""Reports on the progress of moves: sizes, rate, time left, start of a stall, and in words what a move waits for.

A slow move has a rate. A stalled one has the time since when it is stalled, and its words name the broker responsible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import define, field, frozen
from msgspec.structs import replace
from rich.filesize import decimal

from controller.progress.tracker import Copy, CopyState, MoveTracker
from transport.messages import UNKNOWN, UNTHROTTLED, ReassignmentDescription, ReplicaProgress
from transport.metadata import TopicPartition

_ALMOST_SECONDS: Final = 2.0
"""The time left below which a copy is almost complete, so that the growth of the leader's log is neglected."""

_MS: Final = 1000

_NO_END_SECONDS: Final = 1_000_000_000.0
"""The time left, over thirty years, from which on it is not told: a rate near zero would make it too large a number."""


@frozen
class Totals:
    """Totals over all moves: their number, how many are stalled, and the bytes still to be copied."""

    moves: int = 0
    stalled: int = 0
    bytes_left: int = 0
    rate: int = UNKNOWN
    eta_ms: int = UNKNOWN


@define
class Survey:
    """The totals over the moves looked at so far. A replica of unknown size counts as having nothing left to copy."""

    progress: MoveTracker
    moves: int = field(default=0, init=False)
    stalled: list[TopicPartition] = field(factory=list, init=False)
    _left: int = field(default=0, init=False)

    def look_at(self, tp: TopicPartition, now: float) -> None:
        """Add a move."""
        copies = self.progress.copies(tp, now)
        self.moves += 1
        self._left += sum(copy.bytes_left or 0 for copy in copies)
        if any(copy.is_stalled for copy in copies):
            self.stalled.append(tp)

    def totals(self) -> Totals:
        """Return the totals."""
        rate = self.progress.total_rate()
        seconds = self._left / rate if rate else None
        return Totals(self.moves, len(self.stalled), self._left, _whole(rate), _ms(seconds))


def with_progress(
    described: ReassignmentDescription, progress: MoveTracker, all_moves: Totals, now: float, now_ms: int
) -> ReassignmentDescription:
    """Return a description with the known progress of the move.

    `now` is in seconds as in MoveTracker, `now_ms` in milliseconds since 1970; `all_moves` are the totals at that time.
    """
    tp = described.tp
    missing = [r for r in described.new_replicas if r not in described.isr]
    copies = [copy for copy in progress.copies(tp, now) if copy.broker in missing]
    stalled = [copy for copy in copies if copy.is_stalled]
    rates = [0.0 if copy.is_stalled else copy.rate for copy in copies if copy.is_stalled or copy.rate is not None]
    return replace(
        described,
        progress=tuple(_replica(each, described, progress) for each in described.progress),
        waits_for=waits_for(described, copies) if copies or not described.waits_for else described.waits_for,
        rate=_whole(sum(rate for rate in rates if rate)) if rates else UNKNOWN,
        eta_ms=UNKNOWN if stalled or len(copies) < len(missing) else _ms(_slowest(copies, all_moves)),
        stalled_since_ms=now_ms - round(max(copy.quiet for copy in stalled) * _MS) if stalled else UNKNOWN,
        setback=progress.setback(tp),
    )


def _replica(replica: ReplicaProgress, described: ReassignmentDescription, progress: MoveTracker) -> ReplicaProgress:
    tp = described.tp
    size, end = progress.sizes(tp, replica.broker)
    leader_size, leader_end = progress.sizes(tp, described.leader)
    lag = max(0, leader_end - end) if min(end, leader_end) >= 0 else UNKNOWN
    return replace(replica, log_end_offset=end, offset_lag=lag, log_bytes=size, leader_bytes=leader_size)


# --- the time left ----------------------------------------------------------------------------------------------


def _slowest(copies: Sequence[Copy], all_moves: Totals) -> float | None:
    """Return the seconds until the last of these replicas is complete, None if that is not known."""
    each = [_seconds_left(copy, all_moves) for copy in copies]
    known = [seconds for seconds in each if seconds is not None]
    return max(known, default=0.0) if len(known) == len(each) else None


def _seconds_left(copy: Copy, all_moves: Totals) -> float | None:
    left, rate = copy.bytes_left, copy.rate
    if left is None:
        return None
    if not left:
        return 0.0
    # No rate of its own yet: it is done at the latest when all moves are.
    if copy.state is CopyState.ITS_TURN or not rate or rate < 0:
        return all_moves.eta_ms / _MS if all_moves.eta_ms != UNKNOWN else None
    # Nearly done: what the leader receives meanwhile hardly counts.
    if left <= rate * _ALMOST_SECONDS:
        return left / rate
    # The leader's log grows as well, so only the difference in rates brings the end nearer.
    nearer = rate - (copy.leader_rate or 0.0)
    return left / nearer if nearer > 0 else None


def _whole(rate: float | None) -> int:
    return UNKNOWN if rate is None else max(0, round(rate))


def _ms(seconds: float | None) -> int:
    return UNKNOWN if seconds is None or seconds >= _NO_END_SECONDS else round(seconds * _MS)


# --- words ------------------------------------------------------------------------------------------------------


def waits_for(described: ReassignmentDescription, copies: Iterable[Copy]) -> str:
    """Return what a move waits for, worded to follow "waits for"; `copies` are the known ones."""
    missing = [r for r in described.new_replicas if r not in described.isr]
    if not missing:
        # Everything is in sync: what remains is phase B, which needs a live leader inside the target.
        if described.leader in described.new_replicas:
            return "its last steps"
        return f"a live leader among {_brokers(described.new_replicas)}"
    if described.leader < 0:
        return f"a leader: none of the ISR is alive, which is {_brokers(described.isr)}"
    told = {copy.broker: words + _throttled(copy, described) for copy in copies if (words := _words(copy))}
    joining = [r for r in missing if r not in told]
    return "; ".join([*told.values(), *([f"{_brokers(joining)} to join the ISR"] if joining else [])])


def _words(copy: Copy) -> str:
    """Return the words for a replica, "" if it is merely not in the ISR yet."""
    name, leader, behind = f"broker {copy.broker}", f"leader {copy.leader}", _behind(copy)
    seconds = f"{copy.quiet:.0f} s"
    match copy.state:
        case CopyState.DEAD:
            return f"{name}, which is not alive"
        case CopyState.OFFLINE:
            return f"{name}, whose log directory is offline"
        case CopyState.SILENT:
            return f"{name}, which does not answer: it was {behind}, and nothing came for {seconds}"
        case CopyState.LEADER_SILENT:
            return f"{name}: it was {behind}, nothing came for {seconds}, and {leader} does not answer"
        case CopyState.STUCK:
            return f"{name}, which does not fetch from {leader}: {behind}, nothing came for {seconds}"
        case CopyState.ITS_TURN:
            return f"{name}, which copies other partitions first: {behind}"
        case CopyState.COPYING:
            return f"{name}: {behind}" + (f", and {leader} grows faster than it copies" if _falls_behind(copy) else "")
        case CopyState.NOT_TAKEN:
            return f"{name} to be taken into the ISR: it has had all of {leader} for {seconds}"
        case CopyState.COMPLETE | CopyState.NOT_TOLD | CopyState.LEADERLESS:
            return ""


def _throttled(copy: Copy, described: ReassignmentDescription) -> str:
    """Return the throttle that slows a copy down, in words, "" if there is none."""
    own = [replica.throttle for replica in described.progress if replica.broker == copy.broker]
    throttle = min(described.leader_throttle, *own, UNTHROTTLED)
    is_slow = copy.state in (CopyState.COPYING, CopyState.STUCK) and throttle != UNTHROTTLED
    return f", throttled to {decimal(throttle)}/s" if is_slow else ""


def _falls_behind(copy: Copy) -> bool:
    rate, leader_rate, left = copy.rate, copy.leader_rate, copy.bytes_left
    if rate is None or leader_rate is None or left is None:
        return False
    return rate < leader_rate and left > rate * _ALMOST_SECONDS


def _behind(copy: Copy) -> str:
    parts = [] if copy.bytes_left is None else [decimal(copy.bytes_left)]
    if copy.records_left is not None:
        parts.append(f"{copy.records_left} records")
    return f"{' and '.join(parts)} behind" if parts else "behind"


def _brokers(ids: Sequence[int]) -> str:
    names = ", ".join(map(str, ids))
    return f"broker {names}" if len(ids) == 1 else f"brokers {names}"
