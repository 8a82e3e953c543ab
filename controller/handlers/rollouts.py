"""Rollouts: large plans that the controller itself carries out, a few moves at a time.

A rollout advances whenever one of its moves has ended, brokers have come or gone, or an operator has given an order:

    settle   what became of the moves in flight: throttles lifted, then marked
    open     the next part of the plan is read, where few moves are left to choose from
    begin    moves are chosen, marked as in flight, throttled, and begun

Marks are written before a move begins and after it has ended. A new controller therefore knows each move that may be in
flight, and finds out from the assignment whether it is, has ended or has not begun. `controller.rollout` decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from msgspec.structs import replace

from controller.handlers import leader_elections, rollout_brakes, rollout_throttles
from controller.handlers.rollout_moves import able, begin_next, cancel, cancel_dead, judged, leave_out_dead
from controller.handlers.rollout_overrides import BY_HAND, sift
from controller.handlers.rollout_quarantine import quarantine
from controller.handlers.rollout_records import confirmed, happen, write_marks, write_state
from controller.model import rollout_rows
from controller.model.context import ControllerContext
from controller.model.rollout import Rollout
from controller.model.rollout_facts import MovesChosen, PartOpened, PartsClosed, RolloutsSettled
from controller.model.rollout_parts import Part
from controller.model.rounds import Rounds, Step, apply, read
from controller.rollout.judging import TOPIC_DELETED, Course
from controller.rollout.states import BACK, Happening, MoveState, Phase
from transport.log import get_logger
from transport.messages import ElectionType
from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.fields import UndecodableZnode
from transport.store.rollouts import StoredMarks, StoredPart

log = get_logger(__name__)

LOOKED_AHEAD: Final = 5_000
"""The next part of a plan is read once fewer moves than these are left to choose from."""

MOST_STUCK: Final = 20_000
"""Once so many wait for brokers that are alive, no other is read, even if none of them can begin.

All of them are looked at for those that can, which takes 1.4 ms for a thousand.
"""

OPENED_AT_ONCE: Final = 1

Outcomes = Mapping[int, Mapping[int, tuple[MoveState, str]]]
"""The new states of moves, by part and number."""

_ENDS: Final = {
    Course.OVERRIDDEN: MoveState.OVERRIDDEN,
    Course.FAILED: MoveState.FAILED,
    Course.DELETED: MoveState.DELETED,
}
_GONE: Final = frozenset({Course.FAILED, Course.DELETED})
"""The courses of a partition without an assignment."""


def advance(context: ControllerContext, now: float, *, looks: bool = False) -> Rounds[None]:
    """Let the first rollout of the queue go on, as far as one event may take it; look around first if it is time."""
    yield from apply("rollouts", [Step(facts=(RolloutsSettled(),))])
    if looks:
        yield from _restore_again(context)
    yield from sift(context)
    rollout = context.rollouts.current
    if rollout is None:
        return
    if rollout.interrupted:
        left = len(rollout.interrupted)
        yield from open_parts(context, rollout, rollout.interrupted[:OPENED_AT_ONCE])
        # If the store takes no write of this rollout, to try again at once would be in vain.
        if len(rollout.interrupted) < left:
            yield from _again(rollout)
        return
    looks = looks or rollout.is_look_due
    if looks:
        yield from rollout_brakes.look(context, rollout, now)
    if rollout.direction is BACK and not rollout.state.is_paused:
        yield from cancel_dead(context, rollout)
    yield from settle(context, rollout)
    if looks:
        yield from _settle_deleted(context, rollout)
    if rollout.name not in context.rollouts.by_name:
        return
    if rollout.state.phase in {Phase.ABORTING, Phase.ABORTING_TO_UNDO}:
        yield from _land(context, rollout)
    else:
        yield from _move_on(context, rollout, looks=looks)


def _again(rollout: Rollout) -> Rounds[None]:
    """Have the rollout go on in another event, so that this one does not take long."""
    told = MovesChosen(rollout.name, rollout.waits, are_more=True, behind=rollout.behind, asks=rollout.asked)
    yield from apply("rollouts", [Step(facts=(told,))])


# --- parts of the plan --------------------------------------------------------------------------------------------


def open_parts(context: ControllerContext, rollout: Rollout, parts: Iterable[StoredPart]) -> Rounds[None]:
    """Read parts of the plan and their marks; quarantine a rollout that cannot go on without a damaged one."""
    wanted = list(parts)
    where = [(paths.rollout_plan(rollout.name, p.first), paths.rollout_marks(rollout.name, p.first)) for p in wanted]
    znodes = yield from read(path for pair in where for path in pair)
    for part, (plan, marked), planned, marks in zip(wanted, where, znodes[::2], znodes[1::2], strict=True):
        is_begun = marks is not None
        try:
            moves = rollout_rows.read_moves(plan, b"" if planned is None else planned.data, part)
            found = rollout_rows.read_marks(marked, marks.data, part) if marks else StoredMarks(bytes(part.moves))
        except UndecodableZnode as fault:
            if is_begun or isinstance(fault, rollout_rows.Senseless):
                yield from quarantine(rollout.name, fault)
            else:
                yield from _leave_out(rollout, part, fault)
            if rollout.name not in context.rollouts.by_name:
                return
            continue
        version = -1 if marks is None else marks.stat.version
        opened = Part.of(part, moves, found, version, rollout.state.phase)
        yield from apply("rollouts", [Step(facts=(PartOpened(rollout.name, opened),))])
        yield from _take_out_moved(context, rollout, opened)


def _leave_out(rollout: Rollout, part: StoredPart, fault: UndecodableZnode) -> Rounds[None]:
    """Leave out a part of the plan that cannot be read, none of whose moves has begun."""
    log.error("a part of a rollout is left out: it cannot be read", rollout=rollout.name, fault=str(fault))
    lost = replace(part, closed=True, left=0, tally={MoveState.FAILED.value: part.moves})
    parts = tuple(lost if each.first == part.first else each for each in rollout.stored.parts)
    yield from write_state(rollout, parts=parts)


def _take_out_moved(context: ControllerContext, rollout: Rollout, part: Part) -> Rounds[None]:
    """Take out the moves of partitions that administrators have moved before the part was read."""
    if not rollout.by_hand:
        return
    of_use = part.in_states({part.direction.pending, part.direction.in_flight, MoveState.DONE})
    moved = [number for number in of_use if part.moves[number].tp in rollout.by_hand]
    changes = {part.first: dict.fromkeys(moved, (MoveState.OVERRIDDEN, BY_HAND))}
    # The controller before this one may have begun them: an administrator moved them elsewhere during the failover.
    yield from _lift(context, rollout, changes)
    yield from write_marks(rollout, changes)


def _open_next(context: ControllerContext, rollout: Rollout, *, looks: bool) -> Rounds[bool]:
    """Open the next part of the plan if few moves are left; return whether one was opened."""
    if not rollout.unread or not _reads_on(context, rollout, looks=looks):
        return False
    following = rollout.unread[0]
    parts = tuple(replace(p, opened=True) if p.first == following.first else p for p in rollout.stored.parts)
    # From now on the next controller looks whether moves of this part are in flight.
    if not (yield from write_state(rollout, parts=parts)):
        return False
    yield from open_parts(context, rollout, rollout.interrupted)
    return True


def _reads_on(context: ControllerContext, rollout: Rollout, *, looks: bool) -> bool:
    """Return whether few moves are left to choose from; those are looked at one by one from time to time only."""
    waiting = sum(
        part.backlog.count(lambda broker: broker < 0 or broker in context.brokers) for part in rollout.parts.values()
    )
    if waiting < LOOKED_AHEAD:
        return True
    if waiting >= MOST_STUCK or not looks:
        return False
    return sum(1 for _ in islice(able(context, rollout), LOOKED_AHEAD)) < LOOKED_AHEAD


# --- what has ended -----------------------------------------------------------------------------------------------


def settle(context: ControllerContext, rollout: Rollout) -> Rounds[None]:
    """Find out what became of the moves in flight; lift the throttles of those that are over, and mark them."""
    changes: defaultdict[int, dict[int, tuple[MoveState, str]]] = defaultdict(dict)
    for part, number in rollout.flying:
        outcome = outcome_of(context, part, number)
        if outcome is not None:
            changes[part.first][number] = outcome
    if not changes:
        return
    ended = yield from confirmed(context, rollout, changes)
    yield from _lift(context, rollout, ended)
    yield from _elect(context, rollout, ended)
    yield from write_marks(rollout, ended)


def _settle_deleted(context: ControllerContext, rollout: Rollout) -> Rounds[None]:
    """Mark the moves that wait and have lost their topics, also while the rollout is paused."""
    changes: defaultdict[int, dict[int, tuple[MoveState, str]]] = defaultdict(dict)
    for part in rollout.parts.values():
        gone = [name for name in part.topic_ids if name not in context.topics or name in context.deletions]
        for number in part.waiting_of(gone) if gone else ():
            changes[part.first][number] = MoveState.DELETED, TOPIC_DELETED
    yield from write_marks(rollout, (yield from confirmed(context, rollout, changes)))


def outcome_of(context: ControllerContext, part: Part, number: int) -> tuple[MoveState, str] | None:
    """Return what became of a move in flight, None if it still is."""
    move, said = part.moves[number], judged(context, part, number)
    if said.course not in _GONE and context.assignment(move.tp).target_replicas == move.before:
        return part.direction.pending, ""  # it has not begun, or was cancelled and moves back
    match said.course:
        case Course.IN_FLIGHT:
            return None
        case Course.ENDED:
            return part.direction.ended, ""
        case _:
            return _ENDS[said.course], said.why


def _lift(context: ControllerContext, rollout: Rollout, changes: Outcomes) -> Rounds[None]:
    if rollout.stored.throttled:
        over = [rollout.parts[first].moves[n].tp for first, found in changes.items() for n in found]
        yield from rollout_throttles.lift(context, over)


def _elect(context: ControllerContext, rollout: Rollout, changes: Outcomes) -> Rounds[None]:
    """Elect the preferred leaders of partitions that have been moved, where the plan counts on them."""
    if not rollout.stored.settings.elects:
        return
    ended = rollout.direction.ended
    tps = [rollout.parts[f].moves[n].tp for f, found in changes.items() for n, (s, _) in found.items() if s is ended]
    others = [tp for tp in tps if tp in context.leadership and not _is_led_by_preferred(context, tp)]
    yield from leader_elections.elect(context, ElectionType.PREFERRED, others)


def _is_led_by_preferred(context: ControllerContext, tp: TopicPartition) -> bool:
    return context.leadership[tp].leader == context.assignment(tp).replicas[0]


# --- the next moves ------------------------------------------------------------------------------------------------


def _land(context: ControllerContext, rollout: Rollout) -> Rounds[None]:
    """Cancel the moves in flight of a rollout that is aborted, a few in each event."""
    if rollout.flying:
        yield from cancel(context, rollout)
        yield from settle(context, rollout)
    if rollout.flying:
        return
    yield from _end(context, rollout, Happening.LANDED)


def _move_on(context: ControllerContext, rollout: Rollout, *, looks: bool) -> Rounds[None]:
    """Begin the next moves, or finish."""
    over = [first for first, part in rollout.parts.items() if part.is_over]
    if over:
        closed = PartsClosed(rollout.name, tuple(over))
        yield from write_state(rollout, closed, parts=rollout.summarised(closes=over))
    if not rollout.parts and not rollout.unread:
        yield from _end(context, rollout, Happening.FINISHED)
        return
    if rollout.state.is_paused:
        return
    if (yield from _open_next(context, rollout, looks=looks)):
        yield from _again(rollout)
        return
    if rollout.direction is BACK:
        yield from leave_out_dead(context, rollout)
    has_begun_all = yield from begin_next(context, rollout)
    # A part that could not be closed is closed at a later look.
    if not has_begun_all or any(part.is_over for first, part in rollout.parts.items() if first not in over):
        yield from _again(rollout)


def _end(context: ControllerContext, rollout: Rollout, happening: Happening) -> Rounds[None]:
    """Restore the rates of brokers, then note the end, and whether some of them may remain."""
    is_throttled = rollout.stored.throttled
    if is_throttled and rollout.state.after(happening).is_over:
        is_throttled = not (yield from rollout_throttles.restore(context))
    yield from happen(rollout, happening, throttled=is_throttled)


def _restore_again(context: ControllerContext) -> Rounds[None]:
    """Restore the rates that could not be restored when their rollouts ended. No watch fires when an ACL changes."""
    left = context.rollouts.still_throttled
    if left and (yield from rollout_throttles.restore(context)):
        for rollout in left:
            yield from write_state(rollout, throttled=False)
