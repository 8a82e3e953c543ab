"""The brakes of a rollout: why it begins nothing for now, by itself and until that is over."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from controller.handlers.rollouts import advance
from controller.model.context import ControllerContext
from controller.model.notable import Notable, judge
from controller.model.rollout_facts import RolloutSeen, Under
from controller.model.rollouts import Rollout
from controller.model.rounds import Rounds, Step, change
from controller.rollout.choosing import Hold
from transport.metadata import TopicPartition

LOOK_SECONDS: Final = 5.0
"""The time between two looks at what may hold a rollout up."""

_NAMED: Final = 3
_LOOKED_AT: Final = 5_000
"""The most moves that are looked at for the urgent ones among them."""

SCANNED: Final = 200_000
"""The most partitions that one look judges. Of a larger cluster it judges the next ones."""


def look(context: ControllerContext, now: float) -> Rounds[None]:
    """Look at what holds the current rollout up and at which of its moves are urgent, and let it go on."""
    rollout = context.rollouts.current
    if rollout is not None:
        under = _under_min_isr(context, rollout)
        seen = RolloutSeen(rollout.name, now, _brake(context, rollout, under), _urgent(context, rollout), under)
        yield from change("rollouts", [Step(facts=(seen,))])
    yield from advance(context)


def _brake(context: ControllerContext, rollout: Rollout, under: Under) -> Hold | None:
    died = [broker for broker in rollout.stored.brokers if broker not in context.brokers]
    if died:
        text = f"broker{'s' if len(died) > 1 else ''} {', '.join(map(str, died))} died"
        return Hold(text, spares_urgent=True)
    tps = sorted(tp for found in under.values() for tp in found)
    if not tps or rollout.stored.settings.ignore_min_isr:
        return None
    return Hold(f"{named(tps)} {'is' if len(tps) == 1 else 'are'} under min ISR", spares_urgent=True)


def _under_min_isr(context: ControllerContext, rollout: Rollout) -> Under:
    """Judge partitions that lack replicas: one that has all it can have does not get better by waiting."""
    slices = range(0, max(len(context.leadership), 1), SCANNED)
    start = next((at for at in slices if at > rollout.scanned), 0)
    most = max([context.config.min_insync_replicas, *context.min_isrs.values()])
    judged = islice(context.leadership.items(), start, start + SCANNED)
    doubtful = [tp for tp, led in judged if len(led.isr) < most]
    both = Notable.UNDER_MIN_ISR | Notable.UNDER_REPLICATED
    lacking = islice((tp for tp in doubtful if both in judge(context, tp)), _NAMED + 1)
    kept = {at: found for at, found in rollout.under.items() if at in slices and at != start}
    return {**kept, start: tuple(lacking)}


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
