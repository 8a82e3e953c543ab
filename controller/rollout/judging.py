"""The outcome of a move, judged by the partition's assignment in the cluster."""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from typing import Final

from attrs import frozen

from controller.rollout.moves import Move, Replicas
from transport.metadata import OfReplicas


class Course(Enum):
    """The progress of a move."""

    WAITING = "waiting"
    IN_FLIGHT = "in flight"
    ENDED = "ended"
    OVERRIDDEN = "overridden"
    FAILED = "failed"
    DELETED = "deleted"


@frozen
class Judgement:
    """The progress of a move, and in `why` what happened to it unless that is as planned."""

    course: Course
    why: str = ""


TOPIC_DELETED: Final = "its topic was deleted"

_WAITING = Judgement(Course.WAITING)
_IN_FLIGHT = Judgement(Course.IN_FLIGHT)
_ENDED = Judgement(Course.ENDED)
_DELETED = Judgement(Course.DELETED, TOPIC_DELETED)


def judge(
    move: Move,
    now: OfReplicas | None,
    *,
    was_seen: bool = False,
    is_other_topic: bool = False,
    is_deleted: bool = False,
) -> Judgement:
    """Return how far a move is.

    Args:
        move: The move.
        now: What the cluster shows of the partition, None if there is none.
        was_seen: Whether it has been seen in flight; then only somebody else can have cancelled it.
        is_other_topic: Whether the topic was deleted, and another of its name was created.
        is_deleted: Whether the topic was deleted, or is being deleted, and there is no other of its name.
    """
    if is_deleted:
        return _DELETED
    if now is None:
        return Judgement(Course.FAILED, "there is no such partition")
    if is_other_topic:
        return Judgement(Course.OVERRIDDEN, "its topic was deleted and created again")
    target = now.target_replicas
    if now.is_being_reassigned:
        return _IN_FLIGHT if target == move.after else _elsewhere("is being moved to", target, move)
    if target == move.after:
        return _ENDED
    if target == move.before or (_same(target, move.before) and was_seen):
        return Judgement(Course.OVERRIDDEN, "somebody else cancelled it") if was_seen else _WAITING
    return _elsewhere("has replicas", target, move)


def stays_for(move: Move, live: Container[int]) -> str:
    """Return why a move back is left to a later undo: brokers that are not alive. Empty if all of them are."""
    dead = [broker for broker in move.after if broker not in live]
    if not dead:
        return ""
    return f"broker{'s' if len(dead) > 1 else ''} {', '.join(map(str, dead))} of {list(move.after)} not alive"


def _same(one: Replicas, other: Replicas) -> bool:
    return sorted(one) == sorted(other)


def _elsewhere(verb: str, target: Replicas, move: Move) -> Judgement:
    return Judgement(Course.OVERRIDDEN, f"{verb} {list(target)}, not {list(move.before)}")
