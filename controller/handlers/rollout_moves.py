"""The moves of a rollout: chosen, begun, and cancelled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from controller.handlers import reassignments, rollout_brakes, rollout_throttles
from controller.handlers.reassignment_requests import refusal
from controller.handlers.rollout_records import confirmed, write_marks
from controller.model.context import ControllerContext
from controller.model.faults import outgrown
from controller.model.rollout import Rollout
from controller.model.rollout_facts import MoveLeftOut, MovesChosen, NotThrottled
from controller.model.rollout_parts import Part
from controller.model.rounds import Rounds, Step, apply
from controller.rollout.backlog import WIDTH, lane_of
from controller.rollout.choosing import Choice, InFlight, Limits, Standing, choose, passed_over
from controller.rollout.judging import Course, Judgement, judge, stays_for
from controller.rollout.moves import Move
from controller.rollout.states import FORTH, MoveState
from controller.rollout.waiting import Reason, Wait
from transport.log import get_logger
from transport.messages import UNLIMITED, UNTHROTTLED, RolloutSettings
from transport.metadata import NEVER_LED, NO_LEADER, OfReplicas, TopicPartition

log = get_logger(__name__)

BEGUN_AT_ONCE: Final = 50
"""The most moves that one event begins or cancels, so that it does not take long."""

_NOT_WRITTEN: Final = "its znodes cannot be read or written: see the controller's log"

_CLOSES_LANE: Final = frozenset({Reason.INTO, Reason.DEAD, Reason.ASKED})

Place = tuple[Part, int]
"""The place of a move in the plan: its part, and its number there."""

Places = dict[Move, Place]


def judged(context: ControllerContext, part: Part, number: int) -> Judgement:
    """Return how far a move is."""
    move = part.moves[number]
    is_gone = move.topic not in context.topics or move.topic in context.deletions
    assignment = None if is_gone else context.assignment(move.tp)
    if assignment and not part.is_forth and _is_being_cancelled(move, assignment):
        return Judgement(Course.WAITING)
    is_other = not is_gone and context.topic_id(move.topic) != part.topic_ids[move.topic]
    now = assignment if assignment and assignment.replicas else None
    return judge(move, now, is_other_topic=is_other, is_deleted=is_gone)


def _is_being_cancelled(move: Move, now: OfReplicas) -> bool:
    """Return whether a move back was cancelled, and has not ended yet; those of administrators are out of it."""
    return now.is_being_reassigned and now.target_replicas == move.before


# --- choosing -----------------------------------------------------------------------------------------------------


def begin_next(context: ControllerContext, rollout: Rollout) -> Rounds[bool]:
    """Choose the moves that begin next, and begin some of them; return whether no others could begin in their place."""
    places = _candidates(context, rollout)
    choice = _choose(context, rollout, places)
    begin = choice.begin[:BEGUN_AT_ONCE]
    held = rollout_brakes.brake_of(context, rollout) is not None
    behind, asks = _behind(rollout, places, choice), _asks(context, rollout, choice.waits, places)
    told = MovesChosen(rollout.name, choice.waits, is_held=held, behind=behind, asks=asks)
    yield from apply("rollouts", [Step(facts=(told,))])
    # A partition that is gone has no leader to wait for.
    gone = [place for move, place in places.items() if move.tp in choice.waits and _is_gone(context, *place)]
    chosen = [*(places[move] for move in begin), *gone]
    unthrottled = rollout.unthrottled
    begun = yield from _begin(context, rollout, chosen)
    if rollout.unthrottled != unthrottled:
        return False  # others, which need the same throttles, do not begin in their place
    # If no mark could be written, trying again at once would be in vain.
    is_in_vain = all(part.state(number) is part.direction.pending for part, number in chosen)
    return is_in_vain or (len(begun) == len(choice.begin) and not gone)


def _is_gone(context: ControllerContext, part: Part, number: int) -> bool:
    return judged(context, part, number).course in {Course.FAILED, Course.DELETED}


def _candidates(context: ControllerContext, rollout: Rollout) -> Places:
    limits, flying = limits_of(rollout.stored.settings), _in_flight(context, rollout)
    into = Counter(broker for each in flying for broker in each.receivers)
    counted = (each.move for each in flying if each.receivers)
    is_stuck = passed_over(counted, limits, partial(_leader, context), lambda broker: broker not in context.brokers)

    def is_open(broker: int) -> bool:
        return into[broker] < limits.into and (broker < 0 or broker in context.brokers)

    found: Places = {}
    for part in rollout.parts.values():
        found.update((part.moves[number], (part, number)) for number in part.backlog.candidates(is_open, is_stuck))
        if len(found) >= WIDTH:
            break
    return found


def _leader(context: ControllerContext, move: Move) -> int | None:
    """Return the leader of a move's partition; None if it has never had one, or is gone."""
    led = context.leadership.get(move.tp)
    return None if led is None else led.leader


def _behind(rollout: Rollout, places: Places, choice: Choice) -> dict[str, int]:
    """Return how many moves wait that were not looked at, by what the others to the same broker wait for."""
    unseen: Counter[int] = Counter()
    for part in rollout.parts.values():
        unseen.update(part.backlog.sizes)
    unseen.subtract(lane_of(move) for move in places)
    waits = set(choice.waits.values())
    held = next((wait for wait in waits if wait.reason is Reason.HELD), None)
    if held is not None:
        return {str(held): unseen.total()}
    closed = {wait.broker: wait for wait in waits if wait.reason in _CLOSES_LANE}
    return {str(closed[broker]): count for broker, count in unseen.items() if count > 0 and broker in closed}


def _asks(
    context: ControllerContext, rollout: Rollout, waits: Mapping[TopicPartition, Wait], moves: Iterable[Move]
) -> frozenset[int]:
    """Return the brokers that are to tell their room: all that moves which wait are to bring replicas."""
    ignores = rollout.stored.settings.ignore_room

    def needs_to_know(wait: Wait | None) -> bool:
        if wait is None:
            return False
        return wait.reason is Reason.ROOM if ignores else wait.reason is not Reason.HELD

    waiting = (move for move in moves if move.needs_room and needs_to_know(waits.get(move.tp)))
    return frozenset(broker for move in waiting for broker in move.adding) & context.brokers.keys()


def _in_flight(context: ControllerContext, rollout: Rollout) -> list[InFlight]:
    return [_flight(context, part.moves[number]) for part, number in rollout.flying]


def _flight(context: ControllerContext, move: Move) -> InFlight:
    isr = context.leadership.get(move.tp, NEVER_LED).isr
    return InFlight.of(move, context.brokers.__contains__, isr, is_stalled=False)


def _choose(context: ControllerContext, rollout: Rollout, places: Places) -> Choice:
    ours = _in_flight(context, rollout)
    # Moves that administrators have asked for go first: the limits leave only the rest to the rollout.
    foreign = [_move_of(context, tp) for tp in context.reassigning if tp not in context.rollouts.flying]
    flying = [*ours, *(_flight(context, move) for move in foreign)]
    standing = _standing(context, rollout, [*places, *(each.move for each in flying)])
    return choose(places, flying, limits_of(rollout.stored.settings), standing)


def limits_of(settings: RolloutSettings) -> Limits:
    """Return the limits of a rollout."""
    most = None if settings.bytes == UNLIMITED else settings.bytes
    return Limits(settings.into, settings.out_of, settings.leaders, settings.in_all, most)


def _move_of(context: ControllerContext, tp: TopicPartition) -> Move:
    assignment = context.assignment(tp)
    return Move(*tp, assignment.origin_replicas, assignment.target_replicas)


def _standing(context: ControllerContext, rollout: Rollout, moves: Collection[Move]) -> Standing:
    leaders = {move.tp: led.leader for move in moves if (led := context.leadership.get(move.tp)) is not None}
    able = frozenset(context.able_brokers())
    dead = {broker for move in moves for broker in move.after if broker not in able}
    left = {leaders.get(move.tp, NO_LEADER) for move in moves if leaders.get(move.tp) in move.removing}
    # More of them make no difference.
    leads = {broker: context.led_by(broker, 2 * rollout.stored.settings.leaders) for broker in left}
    held = rollout_brakes.hold_of(context, rollout)
    taken = [*(part.moves[number] for part, number in rollout.flying), *rollout.landed]
    receiving = [] if rollout.stored.settings.ignore_room else [broker for move in moves for broker in move.adding]
    awaited = rollout.unheard(receiving)
    unthrottled = {} if rollout.stored.settings.throttle == UNTHROTTLED else rollout.unthrottled
    return Standing(
        leaders, leads, dead, rollout.disks, awaited, taken, urgent=rollout.urgent, unthrottled=unthrottled, hold=held
    )


def leave_out_dead(context: ControllerContext, rollout: Rollout) -> Rounds[None]:
    """Leave partitions as they are whose original replicas are not all alive."""
    changes: defaultdict[int, dict[int, tuple[MoveState, str]]] = defaultdict(dict)
    for part, number in _waiting(context, rollout):
        move = part.moves[number]
        text = stays_for(move, context.brokers)
        if text:
            log.warning("not moved back", rollout=rollout.name, partition=str(move.tp), reason=text)
            changes[part.first][number] = part.direction.pending, text
    yield from write_marks(rollout, changes)
    left = [MoveLeftOut(rollout.name, first, number) for first, found in changes.items() for number in found]
    yield from apply("rollouts", [Step(facts=tuple(left))] if left else [])


def _waiting(context: ControllerContext, rollout: Rollout) -> Iterator[Place]:
    """Yield the moves that wait, of parts with moves to brokers that are not alive."""
    for part in rollout.parts.values():
        if not part.brokers <= context.brokers.keys():
            yield from ((part, number) for number in list(part.backlog.waiting()))


def able(context: ControllerContext, rollout: Rollout) -> Iterator[int]:
    """Yield the numbers of moves that wait and may begin, at the latest once those in flight have ended that can."""
    limits, leader, brokers = limits_of(rollout.stored.settings), partial(_leader, context), context.brokers
    flying = _in_flight(context, rollout)
    has_no_way = passed_over((), limits, leader, lambda broker: broker not in brokers)
    stalled = [each for each in flying if has_no_way(each.move) and each.receivers]
    is_stuck = passed_over((each.move for each in stalled), limits, leader, lambda broker: broker not in brokers)
    into = Counter(broker for each in stalled for broker in each.receivers)

    def is_open(broker: int) -> bool:
        return broker < 0 or (broker in brokers and into[broker] < limits.into)

    for part in rollout.parts.values():
        yield from part.backlog.able(is_open, is_stuck)


# --- beginning ----------------------------------------------------------------------------------------------------


def _begin(context: ControllerContext, rollout: Rollout, chosen: Iterable[Place]) -> Rounds[list[Place]]:
    """Begin moves, each if its partition is still as the plan found it; return those that have begun."""
    changes: defaultdict[int, dict[int, tuple[MoveState, str]]] = defaultdict(dict)
    begun: list[Place] = []
    for part, number in chosen:
        state, why = _verdict(context, part, number)
        changes[part.first][number] = state, why
        if state is part.direction.in_flight:
            begun.append((part, number))
    yield from write_marks(rollout, (yield from confirmed(context, rollout, changes)))
    marked = [(part, number) for part, number in begun if part.state(number) is part.direction.in_flight]
    return (yield from _request(context, rollout, marked))


def _verdict(context: ControllerContext, part: Part, number: int) -> tuple[MoveState, str]:
    said, move = judged(context, part, number), part.moves[number]
    match said.course:
        case Course.ENDED if part.direction is FORTH:
            # An undo must not take back what others have moved.
            return MoveState.OVERRIDDEN, "somebody else has moved it there"
        case Course.ENDED:
            return part.direction.ended, ""
        case Course.WAITING:
            fault = refusal(context, move.tp, move.after) or _outgrown(context, move)
            return (part.direction.in_flight, "") if fault is None else (MoveState.FAILED, fault[1])
        case Course.IN_FLIGHT:
            return MoveState.OVERRIDDEN, "somebody else moves it there already"
        case Course.OVERRIDDEN:
            return MoveState.OVERRIDDEN, said.why
        case Course.FAILED:
            return MoveState.FAILED, said.why
        case Course.DELETED:
            return MoveState.DELETED, said.why


def _outgrown(context: ControllerContext, move: Move) -> tuple[object, str] | None:
    topics = {move.topic: context.topics[move.topic].znode}
    return outgrown(topics, {move.tp: move.after}, context.config.request_limits).get(move.tp)


def _request(context: ControllerContext, rollout: Rollout, begun: Collection[Place]) -> Rounds[list[Place]]:
    begun = yield from _throttled(context, rollout, begun)
    yield from reassignments.begin(context, {part.moves[n].tp: part.moves[n].after for part, n in begun})
    failed: defaultdict[int, dict[int, tuple[MoveState, str]]] = defaultdict(dict)
    for part, number in begun:
        if judged(context, part, number).course is Course.WAITING:
            failed[part.first][number] = MoveState.FAILED, _NOT_WRITTEN
    if failed:
        over = [rollout.parts[first].moves[number].tp for first, found in failed.items() for number in found]
        yield from rollout_throttles.lift(context, over)
        yield from write_marks(rollout, failed)
    return [(part, number) for part, number in begun if number not in failed[part.first]]


def _throttled(context: ControllerContext, rollout: Rollout, places: Collection[Place]) -> Rounds[list[Place]]:
    """Throttle moves that are marked; let those wait again that would copy at full speed, and return the others."""
    moves = [part.moves[number] for part, number in places]
    faults = yield from rollout_throttles.begin(context, moves, rollout.stored.settings.throttle)

    def is_held(move: Move) -> bool:
        return bool(move.adding) and not faults.keys().isdisjoint((move.topic, *move.before, *move.adding))

    held: defaultdict[int, dict[int, tuple[MoveState, str]]] = defaultdict(dict)
    for part, number in places:
        if is_held(part.moves[number]):
            held[part.first][number] = part.direction.pending, ""
    if held:
        over = [rollout.parts[first].moves[number].tp for first, found in held.items() for number in found]
        yield from rollout_throttles.lift(context, over)
        yield from write_marks(rollout, held)
        yield from apply("rollouts", [Step(facts=(NotThrottled(rollout.name, faults),))])
    return [(part, number) for part, number in places if number not in held[part.first]]


# --- cancelling ---------------------------------------------------------------------------------------------------


def cancel(context: ControllerContext, rollout: Rollout) -> Rounds[None]:
    """Cancel moves in flight, a few in each event; their replicas get their order back."""
    yield from _cancel(context, rollout, rollout.flying)


def cancel_dead(context: ControllerContext, rollout: Rollout) -> Rounds[None]:
    """Cancel moves back to brokers that are not alive, which they would wait for; a few in each event."""
    dead = [(part, number) for part, number in rollout.flying if stays_for(part.moves[number], context.brokers)]
    if dead:
        yield from _cancel(context, rollout, dead)


def _cancel(context: ControllerContext, rollout: Rollout, places: Iterable[Place]) -> Rounds[None]:
    moves = [part.moves[n] for part, n in places if judged(context, part, n).course is Course.IN_FLIGHT]
    # Those that cannot be cancelled now keep no others from it, however many they are.
    able = [move for move in moves if refusal(context, move.tp, move.before) is None]
    yield from reassignments.begin(context, {move.tp: move.before for move in able[:BEGUN_AT_ONCE]})
    more = MovesChosen(rollout.name, {}, are_more=len(able) > BEGUN_AT_ONCE)
    yield from apply("rollouts", [Step(facts=(more,))])
