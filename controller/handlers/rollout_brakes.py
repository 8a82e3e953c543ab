"""The brakes of a rollout: why it begins nothing for now, by itself and until that is over."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from controller.handlers.rollouts import advance
from controller.model.context import ControllerContext
from controller.model.notable import Notable, judge
from controller.model.rollout_facts import RolloutSeen
from controller.model.rollouts import Rollout
from controller.model.rounds import Rounds, Step, change
from controller.rollout.choosing import Hold
from transport.metadata import TopicPartition

LOOK_SECONDS: Final = 5.0
"""The time between two looks at what may hold a rollout up."""

_NAMED: Final = 3
_LOOKED_AT: Final = 20_000
"""The most moves that are looked at for the urgent ones among them."""


def look(context: ControllerContext, now: float) -> Rounds[None]:
    """Look at what holds the current rollout up and at which of its moves are urgent, and let it go on."""
    rollout = context.rollouts.current
    if rollout is not None:
        seen = RolloutSeen(rollout.name, now, _brake(context, rollout), _urgent(context, rollout))
        yield from change("rollouts", [Step(facts=(seen,))])
    yield from advance(context)


def _brake(context: ControllerContext, rollout: Rollout) -> Hold | None:
    died = [broker for broker in rollout.stored.brokers if broker not in context.brokers]
    if died:
        text = f"broker{'s' if len(died) > 1 else ''} {', '.join(map(str, died))} died"
        return Hold(text, spares_urgent=True)
    return None if rollout.stored.settings.ignore_min_isr else _under_min_isr(context)


def _under_min_isr(context: ControllerContext) -> Hold | None:
    """Judge partitions that lack replicas: one that has all it can have does not get better by waiting."""
    both = Notable.UNDER_MIN_ISR | Notable.UNDER_REPLICATED
    lacking = (tp for tp in context.leadership if both in judge(context, tp))
    under = list(islice(lacking, _NAMED + 1))
    if not under:
        return None
    return Hold(f"{named(under)} {'is' if len(under) == 1 else 'are'} under min ISR", spares_urgent=True)


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
