"""Goals for a cluster, of every kind, with their options."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from attrs import frozen

from spark_bridge.model.brokers import Broker, BrokerState
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope

KINDS: Final = tuple(GoalKind)

_LIVE: Final = BrokerState.LIVE


def kind_of(seed: int) -> GoalKind:
    """Return the kind whose turn it is."""
    return KINDS[seed % len(KINDS)]


@frozen
class Held:
    """The cluster for which a goal is drawn.

    Attributes:
        brokers: The brokers.
        added: How many of the last of them are new and empty.
        bytes: What each of them has.
        topics: All topics.
        widest: The greatest replication factor so far.
    """

    brokers: Sequence[Broker]
    added: int
    bytes: Sequence[int]
    topics: Sequence[str]
    widest: int


def draw_goal(rng: Random, kind: GoalKind, held: Held) -> Goal:
    """Draw a goal; nothing is forced, so that what would be refused is."""
    named = _named(rng, kind, held)
    factor, topics = _factor(rng, held) if kind in {GoalKind.SET_REPLICATION_FACTOR, GoalKind.LEADERS} else (None, ())
    tolerance, racks = rng.choice((0.02, 0.05, 0.05, 0.1, 0.2)), rng.random() < 0.85
    leaders = rng.choice((None, None, *LeaderScope))
    return Goal(
        kind,
        named,
        replication_factor=factor if kind is GoalKind.SET_REPLICATION_FACTOR else None,
        topics=topics,
        tolerance=tolerance,
        racks=racks,
        leaders=leaders if kind is not GoalKind.LEADERS else None,
        exclude=_excluded(rng, held, named),
        # Not drawn: what is drawn after a goal stays as it was.
        dead_is_gone=sum(held.bytes) % 2 == 0,
    )


def _named(rng: Random, kind: GoalKind, held: Held) -> frozenset[int]:
    live = [b for b in held.brokers if b.state is _LIVE]
    new = held.brokers[len(held.brokers) - held.added :]
    match kind:
        case GoalKind.ADD_BROKERS:
            fit = [b for b in new if b.state is _LIVE] or live or held.brokers
            return frozenset(b.id for b in fit if b in new or b is fit[0])
        case GoalKind.REMOVE_BROKERS:
            some = rng.sample(held.brokers, rng.randint(1, max(1, len(held.brokers) // 3)))
            return frozenset(b.id for b in some)
        case GoalKind.RELIEVE:
            fullest = sorted(range(len(held.brokers)), key=lambda n: -held.bytes[n] / held.brokers[n].capacity)
            chosen = fullest[: rng.randint(1, 2)] if rng.random() < 0.8 else [rng.randrange(len(held.brokers))]
            return frozenset(held.brokers[n].id for n in chosen)
        case _:
            return frozenset()


def _factor(rng: Random, held: Held) -> tuple[int, tuple[str, ...]]:
    """Draw a replication factor, sometimes one that is too great, and in every other cluster for some topics only."""
    factor = rng.randint(1, min(6, max(len(held.brokers), held.widest)))
    some = rng.sample(held.topics, rng.randint(1, len(held.topics))) if rng.random() < 0.5 else []
    # A name may have characters that mean something in a pattern.
    plain = [topic for topic in some if not set(topic) & set("*?[]")]
    return factor, tuple(sorted(plain))


def _excluded(rng: Random, held: Held, named: frozenset[int]) -> frozenset[int]:
    """Draw who is excluded by the goal: mostly nobody, very seldom all."""
    free = [b.id for b in held.brokers if b.id not in named]
    draw = rng.random()
    if draw < 0.01:
        return frozenset(free)
    return frozenset(rng.sample(free, min(len(free), rng.randint(1, 2)))) if draw < 0.15 else frozenset()
