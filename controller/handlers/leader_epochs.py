"""Leaders of Kafka's that can do nothing about their ISR until they have a higher leader epoch.

A leader of any release that is refused with INVALID_UPDATE_VERSION proposes nothing more before its next epoch, and
adopts no state. Those of 2.7 to 3.1, which have AlterPartition in version 0 only, are held up in three more cases:

- A proposal that is refused for any other reason is sent again without pause, and meanwhile the refused replicas count
  for the high watermark, which stands still if they do not fetch.
- A proposal of its former leader epoch is refused, because the order with the next one has crossed it: the answer makes
  the leader forget what it has proposed since, and it waits for an answer that never comes. A higher epoch at once may
  cross the next proposal again, without an end: the leader is given the time to hear of both.
- After a granted shrink, the high watermark stands still until a follower fetches something new (KAFKA-13091). Up to
  3.0, producers that wait for all their records in flight wait for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from controller.handlers.leadership import write_choices
from controller.model import registrations
from controller.model.context import ControllerContext
from controller.model.elections import Choice
from controller.model.facts import LeaderOvertaken
from controller.model.rounds import Rounds, Step, apply
from transport.errors import ErrorCode
from transport.messages import AlterPartitionRequest
from transport.metadata import LeaderAndIsr, TopicPartition

OVERTAKEN_SECONDS: Final = 1.0
"""The time that a leader has to propose under its new epoch, if it has not forgotten that."""


def states_before(context: ControllerContext, request: AlterPartitionRequest) -> Mapping[TopicPartition, LeaderAndIsr]:
    """Return the states of the partitions of a request by a leader of Kafka's, as `thaw` needs them."""
    if not context.config.kafka:
        return {}
    return {item.tp: context.leadership[item.tp] for item in request.partitions if item.tp in context.leadership}


def thaw(
    context: ControllerContext,
    broker_id: int,
    before: Mapping[TopicPartition, LeaderAndIsr],
    errors: Mapping[TopicPartition, ErrorCode],
) -> Rounds[None]:
    """Raise the epochs of a broker's partitions that wait for that after its proposals.

    `before` has their states before the proposals, none for a broker of ours, and `errors` those of all answers.
    Replicas that are not online are not told: their fetches are then refused, and their leader proposes them no more.
    """

    def choose(tp: TopicPartition) -> Choice | None:
        is_reached = context.leadership[tp].leader == broker_id and not registrations.is_held(context, tp)
        return _next_epoch(context, tp) if is_reached else None

    if before:
        yield from write_choices(context, "thaw", list(_frozen(context, broker_id, before, errors)), choose)
        overtaken = _overtaken(context, broker_id, {tp: errors[tp] for tp in before if tp in errors})
        yield from apply("overtaken", [Step(facts=tuple(overtaken))] if overtaken else [])


def _frozen(
    context: ControllerContext,
    broker_id: int,
    before: Mapping[TopicPartition, LeaderAndIsr],
    errors: Mapping[TopicPartition, ErrorCode],
) -> Iterator[TopicPartition]:
    is_old = _is_old(context, broker_id)
    for tp, state in before.items():
        error = errors.get(tp, ErrorCode.NONE)
        if error is ErrorCode.NONE:
            has_shrunk = set(context.leadership[tp].isr) < set(state.isr)
            is_frozen = is_old and has_shrunk
        else:
            is_frozen = error is ErrorCode.INVALID_UPDATE_VERSION or (is_old and error not in _EARLIER)
        if is_frozen:
            yield tp


_EARLIER: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID)
"""The refusals of what was proposed under an earlier leader epoch, or for an earlier topic."""


def _is_old(context: ControllerContext, broker_id: int) -> bool:
    release = context.kafka.releases.get(broker_id)
    return release is not None and release.needs_epochs


def _overtaken(
    context: ControllerContext, broker_id: int, errors: Mapping[TopicPartition, ErrorCode]
) -> list[LeaderOvertaken]:
    """Return the partitions that a broker leads under a later epoch than that of its proposals."""
    fenced = [tp for tp, error in errors.items() if error is ErrorCode.FENCED_LEADER_EPOCH]
    led = [(tp, context.leadership[tp]) for tp in fenced if _is_old(context, broker_id)]
    return [LeaderOvertaken(tp, state) for tp, state in led if state.leader == broker_id]


def thaw_overtaken(context: ControllerContext, tp: TopicPartition, leadership: LeaderAndIsr) -> Rounds[None]:
    """Raise the epoch of a leader whose proposal was overtaken, unless its leadership has changed since."""

    def choose(_tp: TopicPartition) -> Choice | None:
        is_reached = context.leadership[tp] == leadership and not registrations.is_held(context, tp)
        return _next_epoch(context, tp) if is_reached else None

    if context.kafka.overtaken.get(tp) == leadership:
        yield from apply("overtaken", [Step(facts=(LeaderOvertaken(tp, None),))])
    yield from write_choices(context, "thaw", [tp] if context.leadership.get(tp) == leadership else [], choose)


def _next_epoch(context: ControllerContext, tp: TopicPartition) -> Choice:
    """Return the choice that gives a partition the next leader epoch, with the same leader and ISR."""
    state = context.leadership[tp]
    return Choice(state.leader, state.isr, context.online(tp, context.assignment(tp).replicas))
