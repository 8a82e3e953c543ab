"""The progress of moves, from the logs that brokers report. Pure: times are arguments, in seconds that never decrease.

The controller supplies the moves (`Moves`), brokers the sizes of their logs. If a replica's size decreases, the reason
is kept (`setback`). Nothing is kept of partitions that no longer move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from attrs import define, field, frozen

from controller.model.context import ControllerContext
from controller.model.facts import Replica
from controller.model.rate_window import RateWindow
from transport.errors import ErrorCode
from transport.messages import UNKNOWN, LogDir, LogDirReplica
from transport.metadata import NEVER_LED, BrokerRegistration, TopicPartition

STALLED_SECONDS: Final = 10.0
"""The time without a byte after which a replica counts as stuck. A throttled one gets some every second (KIP-73)."""

TURN_SECONDS: Final = 60.0
"""The time for which a replica may wait while its broker copies other partitions from the same leader."""

_GAPS: Final = 3
"""The tolerated pause as a multiple of earlier pauses: fetch responses arrive whole, and late over slow links."""


@frozen
class MovingPartition:
    """A snapshot of a partition that is being moved.

    `target` is the TRS, preferred leader first; `offline` are those of its replicas whose logs cannot be used.
    """

    tp: TopicPartition
    topic_id: str
    leader: int
    isr: tuple[int, ...]
    target: tuple[int, ...]
    offline: tuple[int, ...] = ()

    @property
    def missing(self) -> tuple[int, ...]:
        """The target replicas that have not joined the ISR yet."""
        return tuple(r for r in self.target if r not in self.isr)

    @property
    def measured(self) -> tuple[int, ...]:
        """The brokers whose logs show the progress of the move."""
        return self.target if self.leader in self.target or self.leader < 0 else (self.leader, *self.target)


@frozen
class Moves:
    """All moves at one time, and the live brokers; `asked` are those that are asked for room on their disks as well."""

    partitions: tuple[MovingPartition, ...] = ()
    brokers: tuple[BrokerRegistration, ...] = ()
    asked: frozenset[int] = frozenset()


def moves_of(context: ControllerContext, tps: Iterable[TopicPartition] | None = None) -> Moves:
    """Return the current moves, all or those of the partitions given."""
    brokers = tuple(broker for _, broker in sorted(context.brokers.items()))
    moving = tuple(_moving(context, tp) for tp in (context.reassigning if tps is None else tps))
    return Moves(moving, brokers, context.rollouts.asked)


def _moving(context: ControllerContext, tp: TopicPartition) -> MovingPartition:
    led, target = context.leadership.get(tp, NEVER_LED), context.assignment(tp).target_replicas
    failures = context.failures
    failed = [(r, failures[tp, r]) for r in target if (tp, r) in failures] if failures else []
    offline = tuple(r for r, failure in failed if failure.keeps_from_following)
    return MovingPartition(tp, context.topic_id(tp.topic), led.leader, led.isr, target, offline)


class CopyState(Enum):
    """The state of a replica that has to join the ISR, or the obstacle to it."""

    DEAD = auto()
    """Its broker is not alive."""

    OFFLINE = auto()
    """Its log cannot be used."""

    LEADERLESS = auto()
    """The partition has no leader to copy from."""

    NOT_TOLD = auto()
    """The sizes of the logs have not been reported yet, or a broker cannot report them."""

    SILENT = auto()
    """Its broker does not answer."""

    LEADER_SILENT = auto()
    """The leader's broker does not answer."""

    COPYING = auto()
    ITS_TURN = auto()
    """Its broker copies other partitions of the leader first."""

    STUCK = auto()
    """No byte has arrived for STALLED_SECONDS, or for much longer than earlier pauses."""

    COMPLETE = auto()
    """It has everything that the leader has and will join the ISR soon."""

    NOT_TAKEN = auto()
    """It has had everything that the leader has for STALLED_SECONDS, but the leader has not added it to the ISR."""


@frozen
class Copy:
    """A replica that has to join the ISR. None means unknown; `quiet` are the seconds since the last byte arrived."""

    broker: int
    leader: int
    state: CopyState
    quiet: float
    bytes_left: int | None = None
    records_left: int | None = None
    rate: float | None = None
    """Bytes per second."""

    leader_rate: float | None = None

    @property
    def is_stalled(self) -> bool:
        """Whether it makes no progress."""
        at_once = (CopyState.DEAD, CopyState.OFFLINE, CopyState.LEADERLESS, CopyState.STUCK, CopyState.NOT_TAKEN)
        later = (CopyState.SILENT, CopyState.LEADER_SILENT)
        return self.state in at_once or (self.state in later and self.quiet >= STALLED_SECONDS)


@define
class _Log:
    """A replica's log as its broker last reported it, and the time at which it last grew."""

    size: int
    end: int
    storage_id: str | None
    grew_at: float
    window: RateWindow = field(factory=RateWindow, init=False)


@define
class _Flow:
    """The time of the last byte from a leader to a broker, and the longest recent pause, which decays."""

    at: float
    gap: float = 0.0

    def note(self, now: float) -> None:
        if now > self.at:
            self.gap = max(now - self.at, 0.9 * self.gap)
            self.at = now

    @property
    def patience(self) -> float:
        """The time without a byte that is still normal for this flow."""
        return min(max(STALLED_SECONDS, _GAPS * self.gap), TURN_SECONDS)


@define
class MoveTracker:
    """The known progress of all moves during one controllership."""

    moves: dict[TopicPartition, MovingPartition] = field(factory=dict, init=False)
    _brokers: Mapping[int, BrokerRegistration] = field(factory=dict, init=False)
    _logs: dict[Replica, _Log] = field(factory=dict, init=False)
    _began: dict[TopicPartition, float] = field(factory=dict, init=False)
    _setbacks: dict[TopicPartition, str] = field(factory=dict, init=False)
    _flows: dict[tuple[int, int], _Flow] = field(factory=dict, init=False)
    """By leader and follower."""

    _silent: dict[int, None] = field(factory=dict, init=False)
    _gained: int = field(default=0, init=False)
    _total: RateWindow = field(factory=RateWindow, init=False)

    # --- what comes in ------------------------------------------------------------------------------------------

    def follow(self, moves: Moves, now: float) -> None:
        """Replace the earlier moves by the current ones."""
        before, self.moves = self.moves, {move.tp: move for move in moves.partitions}
        # There may be very many moves, of which few have changed.
        changed = [old for tp, old in before.items() if self.moves.get(tp) != old]
        for old in changed:
            self._compare(old, self.moves.get(old.tp), now)
        self._take_brokers(moves.brokers)
        for old in changed:
            self._forget(old, self.moves.get(old.tp))
        for tp in self.moves:
            self._began.setdefault(tp, now)
        # When nothing moves, the rate of earlier moves must not count for the next.
        if not self.moves:
            self._total = RateWindow()
        elif self._logs:
            self._total.add(now, self._gained)

    def told(self, broker_id: int, asked: Iterable[TopicPartition], log_dirs: Sequence[LogDir], now: float) -> None:
        """Record a broker's answer to the question about the partitions `asked`."""
        self._silent.pop(broker_id, None)
        found = {r.tp: r for log_dir in log_dirs for r in log_dir.replicas}
        is_whole = all(log_dir.error is ErrorCode.NONE for log_dir in log_dirs)
        for tp in asked:
            move = self.moves.get(tp)
            if move is None or broker_id not in move.measured:
                continue
            replica = found.get(tp)
            if replica is not None and replica.topic_id in ("", move.topic_id):
                self._take(move, broker_id, replica, now)
            # Every directory answered and none has this replica: it has not been created yet.
            elif is_whole and broker_id != move.leader:
                nothing = LogDirReplica(tp.topic, move.topic_id, tp.partition, 0, 0, UNKNOWN)
                self._take(move, broker_id, nothing, now)
        self._total.add(now, self._gained)

    def silent(self, broker_id: int) -> None:
        """Record that a broker does not answer."""
        self._silent[broker_id] = None

    # --- what is known ------------------------------------------------------------------------------------------

    def setback(self, tp: TopicPartition) -> str:
        """Return the reason for the last decrease of a move's progress, "" if there was none."""
        return self._setbacks.get(tp, "")

    def sizes(self, tp: TopicPartition, broker_id: int) -> tuple[int, int]:
        """Return the size in bytes and the end offset of a replica's log, UNKNOWN if not reported."""
        log = self._logs.get((tp, broker_id))
        return (UNKNOWN, UNKNOWN) if log is None else (log.size, log.end)

    def copies(self, tp: TopicPartition, now: float) -> tuple[Copy, ...]:
        """Return the target replicas of a moving partition that have not joined the ISR yet."""
        move = self.moves.get(tp)
        return () if move is None else tuple(self._copy(move, broker_id, now) for broker_id in move.missing)

    def total_rate(self) -> float | None:
        """Return the bytes per second copied by all moves, including those completed meanwhile."""
        return self._total.rate()

    # --- within -------------------------------------------------------------------------------------------------

    def _compare(self, old: MovingPartition, new: MovingPartition | None, now: float) -> None:
        if new is not None and set(new.target) != set(old.target):
            self._began[old.tp] = now
            self._setbacks[old.tp] = f"its target was changed from {list(old.target)} to {list(new.target)}"
            return
        for broker_id in old.missing:
            if new is None or broker_id in new.isr:
                # It is complete, so what was missing at the last answer has been copied since.
                self._gained += self._left(old, broker_id)[0] or 0

    def _take_brokers(self, brokers: Iterable[BrokerRegistration]) -> None:
        before = {broker_id: broker.storage_id for broker_id, broker in self._brokers.items()}
        live = self._brokers = {broker.id: broker for broker in brokers}
        self._flows = {pair: flow for pair, flow in self._flows.items() if pair[0] in live and pair[1] in live}
        self._silent = {broker_id: None for broker_id in self._silent if broker_id in live}
        if before != {broker_id: broker.storage_id for broker_id, broker in live.items()}:
            self._forget_lost_disks()

    def _forget_lost_disks(self) -> None:
        """Forget the logs of brokers that came back with another storage."""
        for (tp, broker_id), log in list(self._logs.items()):
            broker = self._brokers.get(broker_id)
            if broker is None or log.storage_id in (None, broker.storage_id):
                continue
            del self._logs[tp, broker_id]
            if tp in self.moves and broker_id != self.moves[tp].leader:
                self._setbacks[tp] = f"broker {broker_id} came back with an empty disk"

    def _forget(self, old: MovingPartition, new: MovingPartition | None) -> None:
        """Forget what is no longer needed of a move that has changed, or ended."""
        measured = () if new is None else new.measured
        for broker_id in old.measured:
            if broker_id not in measured:
                self._logs.pop((old.tp, broker_id), None)
        if new is None:
            self._began.pop(old.tp, None)
            self._setbacks.pop(old.tp, None)

    def _take(self, move: MovingPartition, broker_id: int, told: LogDirReplica, now: float) -> None:
        size, end = told.size, told.log_end_offset
        log = self._logs.get((move.tp, broker_id))
        if log is None:
            broker = self._brokers.get(broker_id)
            storage_id = None if broker is None else broker.storage_id
            log = self._logs[move.tp, broker_id] = _Log(size, end, storage_id, now)
        # Truncated, or old records were deleted: an earlier rate would predict too early an end.
        elif _is_less(size, log.size) or _is_less(end, log.end):
            if broker_id in move.target:
                self._setbacks[move.tp] = _why_less(broker_id, log, told)
            log.window = RateWindow()
        # Bytes or records arrived, so the leader serves this follower.
        elif size > log.size or end > log.end:
            log.grew_at = now
            if broker_id != move.leader:
                self._flow(move, broker_id).note(now)
            if broker_id in move.missing:
                self._gained += max(0, size - log.size) if log.size >= 0 else 0
        log.size, log.end = size, end
        if size >= 0:
            log.window.add(now, size)

    def _left(self, move: MovingPartition, broker_id: int) -> tuple[int | None, int | None]:
        """Return the bytes and the records by which a replica is behind the leader, None if not known."""
        (size, end), (leader_size, leader_end) = self.sizes(move.tp, broker_id), self.sizes(move.tp, move.leader)
        return (
            max(0, leader_size - size) if min(size, leader_size) >= 0 else None,
            max(0, leader_end - end) if min(end, leader_end) >= 0 else None,
        )

    def _copy(self, move: MovingPartition, broker_id: int, now: float) -> Copy:
        log, leader = self._logs.get((move.tp, broker_id)), self._logs.get((move.tp, move.leader))
        quiet = now - (self._began[move.tp] if log is None else log.grew_at)
        left, records = self._left(move, broker_id)
        state = self._state(move, broker_id, left if records is None else records, quiet, now)
        return Copy(
            broker_id,
            move.leader,
            state,
            quiet,
            left,
            records,
            None if log is None else log.window.rate(),
            None if leader is None else leader.window.rate(),
        )

    def _state(self, move: MovingPartition, broker_id: int, left: int | None, quiet: float, now: float) -> CopyState:
        hindrance = self._hindrance(move, broker_id)
        if hindrance is not None:
            return hindrance
        if left is None:
            return CopyState.NOT_TOLD
        # Everything has arrived. What remains is for the leader to ask for a larger ISR.
        if left == 0:
            return CopyState.NOT_TAKEN if quiet >= STALLED_SECONDS else CopyState.COMPLETE
        # Something is missing. Is it on its way?
        flow = self._flow(move, broker_id)
        if quiet < flow.patience:
            return CopyState.COPYING
        # A follower copies some partitions of a leader before others: arrivals for one excuse the rest, for a while.
        waits_its_turn = now - flow.at < flow.patience and quiet < TURN_SECONDS
        return CopyState.ITS_TURN if waits_its_turn else CopyState.STUCK

    def _flow(self, move: MovingPartition, broker_id: int) -> _Flow:
        return self._flows.setdefault((move.leader, broker_id), _Flow(self._began[move.tp]))

    def _hindrance(self, move: MovingPartition, broker_id: int) -> CopyState | None:
        # The order matters: a dead broker is silent as well, and only its death explains that.
        if broker_id not in self._brokers:
            return CopyState.DEAD
        if broker_id in move.offline:
            return CopyState.OFFLINE
        if move.leader < 0:
            return CopyState.LEADERLESS
        if broker_id in self._silent:
            return CopyState.SILENT
        return CopyState.LEADER_SILENT if move.leader in self._silent else None


def _is_less(now: int, before: int) -> bool:
    return 0 <= now < before


def _why_less(broker_id: int, before: _Log, now: LogDirReplica) -> str:
    if _is_less(now.log_end_offset, before.end):
        return f"broker {broker_id} cut its log from offset {before.end} back to {now.log_end_offset}"
    return f"broker {broker_id} deleted old records"
