"""The rollouts of a controllership: the queue, uploads, moves in flight, and the facts that change them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Final

from attrs import Factory, define

from controller.model.rollout import Rollout
from controller.model.rollout_facts import (
    MovedByHandSifted,
    MovesChosen,
    MovesMarked,
    PartOpened,
    PartsClosed,
    RolloutFact,
    RolloutGone,
    RolloutsSettled,
    RolloutUnusable,
    RolloutWritten,
    RoomTold,
    SignalSeen,
    Upload,
    UploadGrown,
)
from controller.model.rollout_parts import Part
from controller.rollout.forecast import TimeLeft
from controller.rollout.states import MoveState
from transport.metadata import TopicPartition

_NOT_COPIED: Final = frozenset({MoveState.OVERRIDDEN, MoveState.SKIPPED, MoveState.FAILED, MoveState.DELETED})
_IN_FLIGHT: Final = frozenset({MoveState.IN_FLIGHT, MoveState.GOING_BACK})


@define
class Rollouts:
    """The rollouts of a controllership."""

    by_name: dict[str, Rollout] = Factory(dict)
    unusable: dict[str, str] = Factory(dict)
    """The rollouts that are quarantined, by name, and why: nothing is done for them until an operator removes them."""

    uploads: dict[str, Upload] = Factory(dict)
    flying: dict[TopicPartition, tuple[str, int, int]] = Factory(dict)
    """The moves in flight: rollout, part and number."""

    is_stirred: bool = False
    """Whether something has happened from which the current rollout may go on."""

    @property
    def queue(self) -> list[Rollout]:
        """The rollouts that are not over: the first is carried out, the others wait for it."""
        waiting = [one for one in self.by_name.values() if not one.state.is_over]
        return sorted(waiting, key=lambda one: one.stored.number)

    @property
    def current(self) -> Rollout | None:
        """The rollout that is carried out."""
        return next(iter(self.queue), None)

    @property
    def still_throttled(self) -> list[Rollout]:
        """The rollouts that are over, and may have left rates of brokers behind."""
        return [one for one in self.by_name.values() if one.state.is_over and one.stored.throttled]

    @property
    def asked(self) -> frozenset[int]:
        """The brokers that are asked for the room on their disks."""
        current = self.current
        return frozenset() if current is None or current.state.is_paused else current.asked

    @property
    def awaited(self) -> frozenset[int]:
        """The brokers among them that moves wait for to answer."""
        return self.current.unheard(self.asked) if self.current is not None else frozenset()

    def stir(self, tp: TopicPartition | None = None) -> None:
        """Note that a move in flight may have ended or, without a partition, that brokers have changed."""
        if (tp in self.flying) if tp is not None else self.by_name:
            self.is_stirred = True

    def stir_topic(self, name: str) -> None:
        """Note that a topic is gone, or about to go."""
        for rollout in self.by_name.values():
            if any(name in part.topic_ids for part in rollout.parts.values()):
                # Its moves that wait are looked at as well.
                rollout.is_look_due = self.is_stirred = True

    def open_moves(self, tps: Collection[TopicPartition]) -> Iterator[tuple[Rollout, Part, int]]:
        """Yield the moves of partitions that wait or are in flight, or may still be taken back, in open parts."""
        wanted: defaultdict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(tps):
            wanted[topic].append(partition)
        for rollout in self.by_name.values():
            for part in rollout.parts.values():
                states = {part.direction.pending, part.direction.in_flight, MoveState.DONE}
                numbers = part.numbers(wanted)
                yield from ((rollout, part, number) for number in numbers if part.state(number) in states)

    def take(self, fact: RolloutFact | RolloutsSettled) -> None:
        """Take a fact about rollouts."""
        match fact:
            case RolloutsSettled():
                self.is_stirred = False
            case RolloutWritten():
                self._written(fact)
            case UploadGrown():
                self.uploads[fact.name] = fact.upload
            case RolloutGone():
                self._gone(fact.name)
            case RolloutUnusable():
                self._gone(fact.name)
                # The next one of the queue may go on.
                self.unusable[fact.name], self.is_stirred = fact.fault, True
            case _ if fact.name not in self.by_name:
                pass  # earlier in the same event, its znodes were found removed, or it was quarantined
            case MovedByHandSifted():
                self.by_name[fact.name].sifting, self.is_stirred = fact.sifting, True
            case _:
                self._of_known(fact)

    def _gone(self, name: str) -> None:
        self.uploads.pop(name, None)
        self.unusable.pop(name, None)
        self._forget(name, None)
        self.by_name.pop(name, None)

    def _written(self, fact: RolloutWritten) -> None:
        self.uploads.pop(fact.name, None)
        known = self.by_name.get(fact.name)
        if known is None:
            self.by_name[fact.name] = Rollout(fact.name, fact.stored, fact.version)
        else:
            before = known.direction
            known.stored, known.version = fact.stored, fact.version
            if known.direction is not before:
                known.time_left = TimeLeft()  # what was copied forth says nothing of the way back
            if known.state.is_over:
                known.asked, known.disks, known.untold = frozenset(), {}, frozenset()
        self.is_stirred = True

    def _of_known(self, fact: RolloutFact) -> None:
        rollout = self.by_name[fact.name]
        match fact:
            case PartOpened():
                self._opened(rollout, fact.part)
            case PartsClosed():
                self._forget(fact.name, fact.firsts)
            case MovesMarked():
                self._marked(rollout, fact)
            case RoomTold():
                self._told(rollout, fact)
            case SignalSeen():
                self.is_stirred = self.is_stirred or rollout.signal != fact.text
                rollout.signal = fact.text
            case MovesChosen():
                rollout.waits, rollout.asked, rollout.is_held = fact.waits, fact.asks, fact.is_held
                rollout.behind = fact.behind
                self.is_stirred = self.is_stirred or fact.are_more
            case _:
                rollout.note(fact)

    def _told(self, rollout: Rollout, fact: RoomTold) -> None:
        awaited = rollout.unheard(rollout.asked)
        rollout.disks, rollout.untold, rollout.landed = fact.disks, fact.untold, []
        rollout.lacks(fact.lacking)
        self.is_stirred = self.is_stirred or bool(awaited - rollout.unheard(awaited))

    def _opened(self, rollout: Rollout, part: Part) -> None:
        rollout.parts = dict(sorted({**rollout.parts, part.first: part}.items()))
        for number in part.flying:
            self.flying[part.moves[number].tp] = rollout.name, part.first, number
        rollout.resumed.update(part.moves[number].tp for number in part.flying)
        rollout.is_look_due = True

    def _forget(self, name: str, firsts: tuple[int, ...] | None) -> None:
        rollout = self.by_name.get(name)
        if rollout is None:
            return
        for first in list(rollout.parts) if firsts is None else firsts:
            rollout.parts.pop(first, None)
        gone = [tp for tp, (of, first, _) in self.flying.items() if of == name and first not in rollout.parts]
        for tp in gone:
            del self.flying[tp]

    def _marked(self, rollout: Rollout, fact: MovesMarked) -> None:
        part = rollout.parts[fact.first]
        part.version = fact.version
        for number, (state, why) in fact.changes.items():
            if rollout.disks and number in part.flying and state is part.direction.ended:
                rollout.landed.append(part.moves[number])
            if state in _NOT_COPIED:
                rollout.time_left.correct(part.moves[number].bytes - rollout.arrived(part.moves[number]))
            part.mark(number, state, why)
            tp = part.moves[number].tp
            rollout.lacking.pop(tp, None)
            if state in _IN_FLIGHT:
                self.flying[tp] = rollout.name, part.first, number
            else:
                self.flying.pop(tp, None)
