"""Room on disks while both copies of each replica exist: for the next moves, and for a whole plan in some order.

A move takes room on the brokers that receive it from its beginning, and frees that of the others at its end. Moves are
made one after another, each as soon as it fits, small ones first where several wait. What never fits is short of room.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from controller.rollout.moves import Move
from transport.metadata import TopicPartition

Places = Mapping[tuple[TopicPartition, int], str]
"""The log directory of each replica, as far as it is known, by partition and broker."""

Place = tuple[int, str]
"""A log directory of a broker, or "" for any of its disks."""


@frozen
class Disk:
    """The free room on the disks of a broker: in all, in the roomiest directory, and in each, in bytes."""

    free: int
    largest: int
    paths: Mapping[str, int] = field(factory=dict)


@define
class Room:
    """The room on disks as replicas come and go. Brokers without a disk are not judged, nor are moves of unknown size.

    `to` has the directories that a plan names for new replicas.
    """

    disks: Mapping[int, Disk] = field(factory=dict)
    to: Places = field(factory=dict)
    used: defaultdict[Place, int] = field(factory=lambda: defaultdict(int))
    _gone: defaultdict[int, int] = field(factory=lambda: defaultdict(int))

    def short(self, move: Move) -> Place | None:
        """Return where there is no room for a move."""
        for broker in move.adding:
            for place in self._places(move, broker, self.to):
                if move.size > self.most(place):
                    return place
        return None

    def most(self, place: Place) -> int:
        """Return the most bytes that a replica may have."""
        return min(self.free(place), self.largest(place))

    def free(self, place: Place) -> int:
        """Return the free bytes."""
        broker, path = place
        disk = self.disks[broker]
        return (disk.paths[path] if path else disk.free) - self.used[place]

    def largest(self, place: Place) -> int:
        """Return the most bytes that fit into one directory; it is not known which of several became emptier."""
        broker, path = place
        return self.free(place) if path else self.disks[broker].largest + self._gone[broker]

    def begin(self, move: Move) -> None:
        """Take the room of a move."""
        for broker in move.adding:
            self._use(move, broker, self.to, max(move.size, 0))

    def leave(self, move: Move, broker: int, at: Places) -> None:
        """Free the room of a replica that a move removes; `at` has the directories where replicas are now."""
        self._use(move, broker, at, -max(move.size, 0))
        self._gone[broker] += max(move.size, 0)

    def _use(self, move: Move, broker: int, names: Places, size: int) -> None:
        for place in self._places(move, broker, names):
            self.used[place] += size

    def _places(self, move: Move, broker: int, names: Places) -> list[Place]:
        """Return the directory of a replica, if it is known, and the disks of its broker as a whole."""
        disk = self.disks.get(broker)
        if disk is None:
            return []
        path = names.get((move.tp, broker), "")
        return [(broker, path), (broker, "")] if path in disk.paths else [(broker, "")]


@frozen
class Shortage:
    """The bytes that are missing on a broker, in a directory if the plan names it, for `moves` of a plan."""

    broker: int
    path: str
    missing: int
    free: int
    moves: int


@frozen
class Fit:
    """The fit of a plan: the shortages, and the most bytes that each broker holds besides what it holds now."""

    shortages: tuple[Shortage, ...]
    peaks: Mapping[int, int]


def fit(moves: Iterable[Move], disks: Mapping[int, Disk], to: Places, at: Places) -> Fit:
    """Return how a plan fits. `to` has the directories that it names, `at` those where logs are now."""
    packing = _Packing(Room(disks, to), at)
    packing.make(moves)
    return Fit(packing.shortages(), dict(packing.peaks))


@define
class _Packing:
    room: Room
    at: Places
    peaks: defaultdict[int, int] = field(factory=lambda: defaultdict(int))
    _waiting: defaultdict[Place, list[tuple[int, int, Move]]] = field(factory=lambda: defaultdict(list))

    def make(self, moves: Iterable[Move]) -> None:
        ready = deque(enumerate(moves))
        while ready:
            number, move = ready.popleft()
            short = self.room.short(move)
            if short is not None:
                heapq.heappush(self._waiting[short], (move.size, number, move))
                continue
            self.room.begin(move)
            self._note_peaks(move.adding)
            for broker in move.removing:
                self.room.leave(move, broker, self.at)
                self._note_peaks([broker])
                ready.extend(self._freed(broker))

    def _note_peaks(self, brokers: Iterable[int]) -> None:
        for broker in brokers:
            self.peaks[broker] = max(self.peaks[broker], self.room.used[broker, ""])

    def shortages(self) -> tuple[Shortage, ...]:
        found = []
        for place, waiting in sorted(self._waiting.items()):
            if waiting:
                free = self.room.free(place)
                needed = sum(size for size, _, _ in waiting)
                missing = max(needed - free, min(size for size, _, _ in waiting) - self.room.largest(place))
                found.append(Shortage(*place, missing, free, len(waiting)))
        return tuple(found)

    def _freed(self, broker: int) -> list[tuple[int, Move]]:
        """Take out the moves that waited for room at a broker and may fit now."""
        found = []
        for place in [place for place in self._waiting if place[0] == broker]:
            waiting = self._waiting[place]
            free = self.room.free(place)
            while waiting and waiting[0][0] <= free:
                size, number, move = heapq.heappop(waiting)
                free -= size
                found.append((number, move))
        return found
