"""The brakes of a rollout: why it begins nothing for now, by itself and until that is over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Final

from controller.model import registrations
from controller.model.context import ControllerContext
from controller.model.notable import Notable, judge
from controller.model.rollout import Rollout
from controller.model.rollout_facts import RolloutSeen, RoomTold, SignalSeen, Under
from controller.model.rounds import Rounds, Step, apply
from controller.rollout.choosing import Hold
from controller.rollout.room import Disk
from transport.metadata import LeaderAndIsr, TopicPartition

LOOK_SECONDS: Final = 5.0
"""The time between two looks at what may hold a rollout up."""

_NAMED: Final = 3
_LOOKED_AT: Final = 5_000
"""The most moves that are looked at for the urgent ones among them."""

SCANNED: Final = 100_000
"""The most partitions that one look judges. Of a larger cluster it judges the next ones."""


def look(context: ControllerContext, rollout: Rollout, now: float) -> Rounds[None]:
    """Look at what holds a rollout up, and at which of its moves are urgent."""
    seen = RolloutSeen(rollout.name, now, _urgent(context, rollout), _under_min_isr(context, rollout))
    yield from apply("rollouts", [Step(facts=(seen,))])


def hold_of(context: ControllerContext, rollout: Rollout) -> Hold | None:
    """Return why a rollout begins nothing for now: by an operator, by a signal, or by the state of the cluster."""
    if rollout.stored.holds:
        return Hold(f"paused by {', '.join(rollout.stored.holds)}")
    return brake_of(context, rollout)


def brake_of(context: ControllerContext, rollout: Rollout) -> Hold | None:
    """Return the brake that holds a rollout, until it lets go by itself."""
    settings = rollout.stored.settings
    if settings.pause_file or settings.go_url:
        signal = "its signal has not been asked for yet" if rollout.signal is None else rollout.signal
        if signal:
            return Hold(signal)
    died = [broker for broker in rollout.stored.brokers if not registrations.is_alive(context, broker)]
    if died:
        text = f"broker{'s' if len(died) > 1 else ''} {', '.join(map(str, died))} died"
        return Hold(text, spares_urgent=True)
    tps = sorted(tp for found in rollout.under.values() for tp in found)
    if not tps or settings.ignore_min_isr:
        return None
    return Hold(f"{named(tps)} {'is' if len(tps) == 1 else 'are'} under min ISR", spares_urgent=True)


def signalled(context: ControllerContext, name: str, text: str) -> Rounds[None]:
    """Take an answer of the operator's signal: why it says no, empty if it says yes."""
    if name in context.rollouts.by_name:
        yield from apply("rollouts", [Step(facts=(SignalSeen(name, text),))])


def room_seen(
    context: ControllerContext,
    room: Iterable[tuple[int, int, int]],
    lacking: Iterable[tuple[TopicPartition, int]],
    untold: Iterable[int],
) -> Rounds[None]:
    """Take the room on the disks of brokers, which do not tell any, and the bytes that moves in flight lack."""
    rollout = context.rollouts.current
    if rollout is not None:
        disks = {broker: Disk(free, largest) for broker, free, largest in room}
        told = RoomTold(rollout.name, disks, dict(lacking), frozenset(untold))
        yield from apply("rollouts", [Step(facts=(told,))])


def _under_min_isr(context: ControllerContext, rollout: Rollout) -> Under:
    """Judge partitions that lack replicas: one that has all it can have does not get better by waiting."""
    slices = range(0, max(len(context.leadership), 1), SCANNED)
    start = next((at for at in slices if at > rollout.scanned), 0)
    most = max([context.config.min_insync_replicas, *context.min_isrs.values()])
    doubtful = _with_less(context, start, most)
    both = Notable.UNDER_MIN_ISR | Notable.UNDER_REPLICATED
    lacking = islice((tp for tp in doubtful if both in judge(context, tp)), _NAMED + 1)
    kept = {at: found for at, found in rollout.under.items() if at in slices and at != start}
    return {**kept, start: tuple(lacking)}


def lagging(context: ControllerContext, rollout: Rollout) -> list[TopicPartition]:
    """Return the partitions that lack live replicas and are not being moved, of those that were judged last."""
    start, alive = max(rollout.scanned, 0), set(context.able_brokers())
    widest = max((len(led.isr) for _, led in _slice(context, start)), default=0)
    doubtful = islice(_with_less(context, start, widest), _LOOKED_AT)
    return [
        tp
        for tp in doubtful
        if tp not in context.reassigning
        and Notable.UNDER_REPLICATED in judge(context, tp)
        and alive.issuperset(context.assignment(tp).replicas)
    ]


def _with_less(context: ControllerContext, start: int, most: int) -> list[TopicPartition]:
    """Return the partitions of a slice of the cluster with smaller ISRs."""
    return [tp for tp, led in _slice(context, start) if len(led.isr) < most]


def _slice(context: ControllerContext, start: int) -> Iterator[tuple[TopicPartition, LeaderAndIsr]]:
    return islice(context.leadership.items(), start, start + SCANNED)


def named(tps: Collection[TopicPartition]) -> str:
    """Return the first few of some partitions, and whether there are more."""
    first = ", ".join(str(tp) for tp in islice(tps, _NAMED))
    return f"{first} and more" if len(tps) > _NAMED else first


def _urgent(context: ControllerContext, rollout: Rollout) -> frozenset[TopicPartition]:
    """Return the partitions that lack replicas, among those whose moves wait."""
    waiting = islice(_waiting(rollout), _LOOKED_AT)
    return frozenset(tp for tp in waiting if Notable.UNDER_REPLICATED in judge(context, tp))


def _waiting(rollout: Rollout) -> Iterator[TopicPartition]:
    for part in rollout.parts.values():
        yield from (part.moves[number].tp for number in part.backlog.waiting())
