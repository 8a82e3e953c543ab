"""Choices for partitions, made from what the context holds of them.

A large cluster has few combinations of replicas, leader and ISR, so a large round decides once for each of them: for
all partitions that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import chain, repeat
from typing import TypeVar

from attrs import evolve

from controller.model import elections, registrations
from controller.model.context import ControllerContext
from controller.model.elections import Candidate, Choice
from controller.model.known_topics import assignments_of
from transport.metadata import NEVER_LED, LeaderAndIsr, TopicPartition
from transport.store import formats

T = TypeVar("T")


def singular(context: ControllerContext) -> frozenset[TopicPartition]:
    """Return the partitions of whose replicas one differs from others on its broker: they are like no others."""
    return frozenset(tp for tp, _ in chain(context.failures, context.waiting, context.strays.recalled))


def decide_all(
    context: ControllerContext,
    tps: Sequence[TopicPartition],
    decide: Callable[[TopicPartition], T],
    kinds: Sequence[Hashable] | None = None,
    taken: dict[Hashable, T] | None = None,
) -> list[T]:
    """Return what `decide` returns for known partitions, called once for all that are alike and of the same kind.

    The decision has to follow from the replicas, the leader, the ISR, and the brokers that are alive. `taken` has the
    decisions about others, and gets these.
    """
    alone, taken = singular(context), {} if taken is None else taken
    led = [context.leadership.get(tp, NEVER_LED) for tp in tps]
    decisions = []
    for tp, assignment, state, kind in zip(
        tps, assignments_of(context.topics, tps), led, kinds or repeat(None, len(tps)), strict=True
    ):
        key = assignment.replicas, state.leader, state.isr, kind
        try:
            decision = decide(tp) if tp in alone else taken[key]
        except KeyError:
            decision = taken[key] = decide(tp)
        decisions.append(decision)
    return decisions


# --- one partition ------------------------------------------------------------------------------------------------


def first(context: ControllerContext, tp: TopicPartition) -> tuple[Choice, LeaderAndIsr, bytes]:
    """Return the choice of a first leader, the leadership, and its stored form."""
    online = context.online(tp, context.assignment(tp).replicas)
    leadership = elections.initial(online, context.epoch)
    assert leadership is not None, "partitions without a live replica were left out"
    choice = Choice(leadership.leader, leadership.isr, beginners=online)
    return choice, leadership, formats.encode_partition_state(leadership)


def is_hopeless(context: ControllerContext, tp: TopicPartition) -> bool:
    """Return whether no member of the ISR can lead, but another replica could.

    A member that failed to lead or follow for another reason than its log leads before others do.
    """
    isr = context.leadership[tp].isr
    has_member = bool(context.online(tp, isr)) or any(failing(context, tp, isr)) or awaits_member(context, tp)
    return not has_member and bool(context.online(tp, context.assignment(tp).replicas))


def awaits_member(context: ControllerContext, tp: TopicPartition) -> bool:
    """Return whether a member of the ISR is on an unaddressable broker.

    It is alive and has all records, and it will lead when its registration is repaired: an unclean election would lose
    records of a live broker.
    """
    return bool(context.unusable) and any(map(context.is_unaddressable, context.leadership.get(tp, NEVER_LED).isr))


def failing(
    context: ControllerContext, tp: TopicPartition, replicas: Iterable[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return those of the replicas that failed to lead and follow, and those that failed to follow.

    Both may lead while no other can. A replica whose log cannot be used is in neither.
    """
    failed: list[int] = []
    stuck: list[int] = []
    for broker_id in replicas if context.failures else ():
        failure = context.failures.get((tp, broker_id))
        if failure is None or not failure.keeps_from_leading or failure.is_of_log:
            continue
        if broker_id in context.brokers and broker_id not in context.shutting_down:
            (stuck if failure.keeps_from_following else failed).append(broker_id)
    return tuple(failed), tuple(stuck)


def candidate(
    context: ControllerContext,
    tp: TopicPartition,
    replicas: tuple[int, ...] | None = None,
    unclean: Collection[str] = (),
) -> Candidate:
    """Return a partition as the candidate of an election among `replicas`, by default all that are assigned."""
    replicas = context.assignment(tp).replicas if replicas is None else replicas
    leaving = tuple(r for r in replicas if r in context.shutting_down and _is_reached(context, tp, r))
    online = context.online(tp, replicas)
    recalled = tuple(r for r in replicas if (tp, r) in context.strays.recalled)
    is_held, allow_unclean = registrations.is_held(context, tp), tp.topic in unclean and not awaits_member(context, tp)
    failed, stuck = failing(context, tp, replicas)
    gone = unserved(context, tp) if is_held else ()
    leadership = context.leadership[tp]
    return Candidate(replicas, online, leadership, leaving, allow_unclean, recalled, failed, stuck, is_held, gone)


def unserved(context: ControllerContext, tp: TopicPartition) -> tuple[int, ...]:
    """Return the members of an ISR that are not alive or cannot follow: their leader has held the partition."""
    isr = context.leadership[tp].isr
    return tuple([r for r in isr if not _is_reached(context, tp, r)])


def _is_reached(context: ControllerContext, tp: TopicPartition, broker_id: int) -> bool:
    return context.is_served(tp, broker_id) or context.is_unaddressable(broker_id)


def without(
    context: ControllerContext, tp: TopicPartition, gone: Sequence[int], elected: Choice | None = None
) -> Choice:
    """Return the choice that takes the replicas on `gone` offline and out of the ISR, which never becomes empty.

    If a new leader has been `elected`, it stays that, with its ISR.
    """
    replicas = context.assignment(tp).replicas
    leaving = tuple(r for r in replicas if r in gone)
    alive = tuple(r for r in leaving if r in context.brokers)
    if elected is not None:
        return evolve(elected, gone=leaving, stopped=alive)
    before = context.leadership[tp]
    leader, isr = elections.without_replicas(before, gone)
    # An unaddressable leader proposes the smaller ISR itself, under the leader epoch that it knows.
    is_left = registrations.is_held(context, tp) and before.leader not in gone
    if is_left or (leader, isr) == (before.leader, before.isr):
        leader, isr = before.leader, before.isr
        # The leadership is unchanged, but metadata also lists offline replicas, which have changed.
        return Choice(leader, isr, gone=leaving, stopped=alive, is_change=False)
    others = tuple(r for r in replicas if r not in gone)
    return Choice(leader, isr, others, gone=leaving, stopped=alive)
