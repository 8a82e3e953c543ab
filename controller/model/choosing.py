"""Choices for one partition, made from what the context holds of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import evolve

from controller.model import elections
from controller.model.context import ControllerContext
from controller.model.elections import Candidate, Choice
from transport.metadata import LeaderAndIsr, TopicPartition
from transport.store import formats


def first(context: ControllerContext, tp: TopicPartition) -> tuple[Choice, LeaderAndIsr, bytes]:
    """Return the choice of a first leader, the leadership, and its stored form."""
    online = context.online(tp, context.assignment(tp).replicas)
    leadership = elections.initial(online, context.epoch)
    assert leadership is not None, "partitions without a live replica were left out"
    choice = Choice(leadership.leader, leadership.isr, beginners=online)
    return choice, leadership, formats.encode_partition_state(leadership)


def is_hopeless(context: ControllerContext, tp: TopicPartition) -> bool:
    """Return whether no member of the ISR can lead, but another replica could."""
    has_member = bool(context.online(tp, context.leadership[tp].isr))
    return not has_member and bool(context.online(tp, context.assignment(tp).replicas))


def candidate(
    context: ControllerContext,
    tp: TopicPartition,
    replicas: tuple[int, ...] | None = None,
    unclean: Collection[str] = (),
) -> Candidate:
    """Return a partition as the candidate of an election among `replicas`, by default all that are assigned."""
    replicas = context.assignment(tp).replicas if replicas is None else replicas
    leaving = tuple(r for r in replicas if r in context.shutting_down and context.is_served(tp, r))
    online = context.online(tp, replicas)
    recalled = tuple(r for r in replicas if (tp, r) in context.recalled)
    return Candidate(replicas, online, context.leadership[tp], leaving, tp.topic in unclean, recalled)


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
    if (leader, isr) == (before.leader, before.isr):
        # The leadership is unchanged, but metadata also lists offline replicas, which have changed.
        return Choice(leader, isr, gone=leaving, stopped=alive, is_change=False)
    others = tuple(r for r in replicas if r not in gone)
    return Choice(leader, isr, others, gone=leaving, stopped=alive)
