"""Choosing the moves that begin next: a pure function of what waits, what is in flight, and what the limits are.

1. Candidates are looked at in order, urgent ones first. One begins if it exceeds no limit together with all that is in
   flight and all that was chosen before it.
2. The first that has to wait for others to end keeps its turn: what it needs counts as taken for those after it. So
   small moves that fit between do not keep it waiting for ever.
3. It keeps no turn if what it waits for is held by a move that makes no progress, as the others would wait as long.
4. A move that is larger than the limit of bytes begins when no other bytes are in flight.
5. A move in flight to a replica set with a dead broker ends once that is back, whether it adds the broker or keeps it.
   It does not use up the limit of moves, or of leaders; what it still copies to live brokers counts at these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, partial
from typing import Final

from attrs import define, field, frozen

from controller.rollout.moves import Move, Replicas
from controller.rollout.room import Disk, Places, Room
from controller.rollout.waiting import Reason, Wait
from transport.metadata import NO_LEADER, TopicPartition

_KEEPS_TURN: Final = frozenset({Reason.INTO, Reason.OUT_OF, Reason.LEADERS, Reason.BYTES})


@frozen
class Limits:
    """The most that may be in flight at once. `into`, `out_of` and `leaders` are for each broker, in moves.

    A broker sends a replica if it leads the partition. `leaders` are the moves that take away its leadership; besides,
    never more than half of the partitions that it leads.
    """

    into: int = 5
    out_of: int = 5
    leaders: int = 5
    in_all: int = 500
    bytes: int | None = None


@frozen
class Hold:
    """A reason why nothing begins. With `spares_urgent`, urgent moves begin nevertheless, as they are the cure."""

    text: str
    spares_urgent: bool = False


@frozen
class Standing:
    """The state of the cluster, as far as it matters to the choice.

    Attributes:
        leaders: The leader of each partition of candidates and moves in flight; missing, or NO_LEADER, if it has none.
        led: The number of partitions that each broker leads.
        dead: The brokers that are not alive.
        disks: The room on the disks of brokers, as far as it is known.
        awaited: The brokers that are being asked for their room: nothing that needs some begins before they answer.
        taken: The moves that have begun, and for which more room may be used than `disks` shows.
        to: The log directories that the plan names.
        urgent: The partitions that come first, as they lack replicas.
        unthrottled: The live brokers, and the topics, that could not be throttled a moment ago, and why.
        hold: Why nothing begins.
    """

    leaders: Mapping[TopicPartition, int] = field(factory=dict)
    led: Mapping[int, int] = field(factory=dict)
    dead: Collection[int] = frozenset()
    disks: Mapping[int, Disk] = field(factory=dict)
    awaited: Collection[int] = frozenset()
    taken: Collection[Move] = ()
    to: Places = field(factory=dict)
    urgent: Collection[TopicPartition] = frozenset()
    unthrottled: Mapping[int | str, str] = field(factory=dict)
    hold: Hold | None = None

    def leader(self, move: Move) -> int:
        """Return the leader of a move's partition, or NO_LEADER."""
        return self.leaders.get(move.tp, NO_LEADER)


@frozen
class InFlight:
    """A move in flight."""

    move: Move
    is_stalled: bool = False
    """Whether it makes no progress."""

    awaits: int | None = None
    """The dead broker of its target that it waits for."""

    copying: tuple[int, ...] = ()
    """The live brokers among its new ones that are not in the ISR yet; of interest only if it awaits a dead one."""

    @classmethod
    def of(cls, move: Move, is_alive: Callable[[int], bool], isr: Collection[int], *, is_stalled: bool) -> InFlight:
        """Return a move in flight, as brokers and the ISR of its partition are."""
        dead = next((broker for broker in move.after if broker not in isr and not is_alive(broker)), None)
        copying = tuple(broker for broker in move.adding if broker not in isr and is_alive(broker))
        return cls(move, is_stalled or dead is not None, dead, copying)

    @property
    def receivers(self) -> tuple[int, ...]:
        """The brokers at which it counts as a replica that they receive."""
        return self.move.adding if self.awaits is None else self.copying


@frozen
class Choice:
    """The moves that begin, and what each other candidate waits for, and each move in flight to a dead broker."""

    begin: tuple[Move, ...]
    waits: Mapping[TopicPartition, Wait]


def choose(candidates: Iterable[Move], in_flight: Collection[InFlight], limits: Limits, standing: Standing) -> Choice:
    """Return which candidates begin now, and what the others wait for."""
    load = _Load(limits, standing, Room(standing.disks, standing.to))
    for move in standing.taken:
        load.room.begin(move)
    begin: list[Move] = []
    waits: dict[TopicPartition, Wait] = {}
    for each in in_flight:
        if each.awaits is None:
            load.add(each.move)
        else:
            load.add_waiting(each)
            waits[each.move.tp] = Wait(Reason.DEAD_IN_FLIGHT, each.awaits)
    is_turn_kept = False
    for move in sorted(candidates, key=lambda move: move.tp not in standing.urgent):
        wait = load.obstacle(move)
        if wait is None:
            load.add(move)
            load.room.begin(move)
            begin.append(move)
            continue
        waits[move.tp] = wait
        if not is_turn_kept and wait.reason in _KEEPS_TURN and not _is_stuck(wait, in_flight, standing):
            load.keep_turn(move, wait)
            is_turn_kept = True
    return Choice(tuple(begin), waits)


def passed_over(
    flying: Iterable[Move], limits: Limits, leader_of: Callable[[Move], int | None], is_dead: Callable[[int], bool]
) -> Callable[[Move], bool]:
    """Return a function that tells which moves cannot begin, whatever else is chosen, so that others are looked at.

    They go to a dead broker, or their leader is gone or sends as much as it may. `leader_of` returns None where it is
    not known whether there is a leader.
    """
    sent = Counter(map(leader_of, (move for move in flying if move.adding)))
    held = {leader for leader, count in sent.items() if count >= limits.out_of} | {NO_LEADER}

    # Very many moves have the same few lists of replicas.
    @cache
    def is_any_dead(replicas: Replicas) -> bool:
        return any(map(is_dead, replicas))

    @cache
    def is_copied(before: Replicas, after: Replicas) -> bool:
        return not set(after) <= set(before)

    def is_passed_over(move: Move) -> bool:
        if is_any_dead(move.after):
            return True
        leader = leader_of(move)
        return leader in held and leader is not None and is_copied(move.before, move.after)

    return is_passed_over


def _is_stuck(wait: Wait, in_flight: Iterable[InFlight], standing: Standing) -> bool:
    """Return whether a move that makes no progress holds what is waited for."""
    stalled = (each.move for each in in_flight if each.is_stalled)
    return any(_takes(move, wait, standing) for move in stalled)


def _takes(move: Move, wait: Wait, standing: Standing) -> bool:
    match wait.reason:
        case Reason.INTO:
            return wait.broker in move.adding
        case Reason.OUT_OF:
            return wait.broker == standing.leader(move)
        case Reason.LEADERS:
            return wait.broker == _leaves(move, standing)
        case _:
            return move.bytes > 0


def _leaves(move: Move, standing: Standing) -> int:
    """Return the broker whose leadership a move takes away, NO_LEADER if it takes none away."""
    leader = standing.leader(move)
    return leader if leader in move.removing else NO_LEADER


@define
class _Load:
    """The moves that count as in flight, at each broker and in all."""

    limits: Limits
    standing: Standing
    room: Room
    _into: defaultdict[int, int] = field(factory=partial(defaultdict, int))
    _out_of: defaultdict[int, int] = field(factory=partial(defaultdict, int))
    _leaders: defaultdict[int, int] = field(factory=partial(defaultdict, int))
    _in_all: int = 0
    _bytes: int = 0

    def add(self, move: Move) -> None:
        """Count a move that is in flight, or begins."""
        self._count_brokers(move)
        self._in_all += 1
        self._bytes += move.bytes

    def add_waiting(self, each: InFlight) -> None:
        """Count what a move still copies that cannot end before a dead broker is back."""
        for broker in each.copying:
            self._into[broker] += 1
        if each.copying:
            self._out_of[self.standing.leader(each.move)] += 1
            self._bytes += each.move.bytes

    def keep_turn(self, move: Move, wait: Wait) -> None:
        """Count what a move needs that waits, so that those after it leave it free."""
        self._count_brokers(move)
        if wait.reason is Reason.BYTES:
            self._bytes += move.bytes

    def _count_brokers(self, move: Move) -> None:
        adding = move.adding
        for broker in adding:
            self._into[broker] += 1
        if adding:
            self._out_of[self.standing.leader(move)] += 1
        self._leaders[_leaves(move, self.standing)] += 1

    def obstacle(self, move: Move) -> Wait | None:
        """Return what a move has to wait for, None if it may begin."""
        hold = self.standing.hold
        if hold is not None and not (hold.spares_urgent and move.tp in self.standing.urgent):
            return Wait(Reason.HELD, text=hold.text)
        return self._at_brokers(move) or self._at_throttles(move) or self._in_general(move)

    def _at_brokers(self, move: Move) -> Wait | None:
        adding, leader, left = move.adding, self.standing.leader(move), _leaves(move, self.standing)
        for broker in move.after:
            if broker in self.standing.dead:
                return Wait(Reason.DEAD, broker)
        if adding and leader == NO_LEADER:
            return Wait(Reason.NO_LEADER)
        for broker in adding:
            if broker in self.standing.awaited and move.needs_room:
                return Wait(Reason.ASKED, broker)
        for broker in adding:
            if self._into[broker] >= self.limits.into:
                return Wait(Reason.INTO, broker, most=self.limits.into)
        if adding and self._out_of[leader] >= self.limits.out_of:
            return Wait(Reason.OUT_OF, leader, most=self.limits.out_of)
        most = self._most_leaders(left)
        if left != NO_LEADER and self._leaders[left] >= most:
            return Wait(Reason.LEADERS, left, most=most)
        return None

    def _at_throttles(self, move: Move) -> Wait | None:
        """Return the wait for a live broker or a topic that cannot be throttled: the move would copy at full speed."""
        unthrottled = self.standing.unthrottled
        subjects: tuple[int | str, ...] = (move.topic, *move.before, *move.after)
        if not (unthrottled and move.adding):
            return None
        text = next((unthrottled[subject] for subject in subjects if subject in unthrottled), None)
        return None if text is None else Wait(Reason.UNTHROTTLED, text=text)

    def _most_leaders(self, broker: int) -> int:
        led = self.standing.led.get(broker)
        return self.limits.leaders if led is None else min(self.limits.leaders, max(led // 2, 1))

    def _in_general(self, move: Move) -> Wait | None:
        if self._in_all >= self.limits.in_all:
            return Wait(Reason.IN_ALL, most=self.limits.in_all)
        most = self.limits.bytes
        if most is not None and move.bytes and self._bytes and self._bytes + move.bytes > most:
            return Wait(Reason.BYTES, most=most)
        short = self.room.short(move)
        if short is not None:
            broker, path = short
            return Wait(Reason.ROOM, broker, max(self.room.most(short), 0), move.size, f" in {path}" if path else "")
        return None
