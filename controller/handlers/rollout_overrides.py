"""Moves by hand of partitions that rollouts would move: they go first, and take their partitions out for good."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from attrs import evolve

from controller.handlers import rollout_throttles
from controller.handlers.rollout_records import write_marks
from controller.model.context import ControllerContext
from controller.model.rollout_facts import MovedByHand, MovedByHandSifted, Sifting
from controller.model.rollouts import Rollout
from controller.model.rounds import Rounds, Step, apply, commit, read, unanswered_rejections
from controller.rollout.states import MoveState
from transport.log import get_logger
from transport.metadata import TopicPartition
from transport.store import paths, rollouts
from transport.store.fields import UndecodableZnode
from transport.store.protocol import ANY_VERSION, Create, Set

log = get_logger(__name__)

BY_HAND: Final = "an administrator has moved it"

_LOOKED_THROUGH: Final = 1_000
"""Once more partitions are remembered, and again whenever they are twice as many, those not in the plan are dropped."""

READ_AT_ONCE: Final = 5
"""The parts of the plan that are read for this in one event."""


def take_out(context: ControllerContext, partitions: Collection[TopicPartition]) -> Rounds[None]:
    """Take partitions out of all rollouts, for good, because an administrator is about to move them."""
    if not context.rollouts.by_name or not partitions:
        return
    moved = frozenset(partitions)
    changes: defaultdict[str, defaultdict[int, dict[int, tuple[MoveState, str]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for rollout, part, number in context.rollouts.open_moves(moved):
        changes[rollout.name][part.first][number] = MoveState.OVERRIDDEN, BY_HAND
    yield from rollout_throttles.lift(context, [tp for tp in moved if tp in context.rollouts.flying])
    for name, found in changes.items():
        yield from write_marks(context.rollouts.by_name[name], found)
    for rollout in list(context.rollouts.by_name.values()):
        yield from _remember(context, rollout, moved)


def _remember(context: ControllerContext, rollout: Rollout, moved: frozenset[TopicPartition]) -> Rounds[None]:
    """Remember what was moved while its part of the plan is not in memory: before it is read, or before an undo."""
    if moved <= rollout.by_hand or not rollout.closed_parts:
        return
    every = rollout.by_hand | moved
    if len(every) > max(_LOOKED_THROUGH, 2 * rollout.by_hand_needed) and rollout.sifting is None:
        sifting = Sifting(every, tuple(part.first for part in rollout.closed_parts))
        yield from apply("rollouts", [Step(facts=(MovedByHandSifted(rollout.name, sifting),))])
    yield from _write(context, rollout, every)


def _write(
    context: ControllerContext, rollout: Rollout, every: frozenset[TopicPartition], needed: int = 0
) -> Rounds[None]:
    path, data = paths.rollout_strangers(rollout.name), rollouts.encode_by_hand(list(every))
    if len(data) > context.config.request_limits.chunk:
        log.warning("too many moves by hand: a rollout forgets the latest ones", rollout=rollout.name, moves=len(every))
        return
    version = rollout.by_hand_version
    write = Create(path, data) if version < 0 else Set(path, data, ANY_VERSION)
    fact = MovedByHand(rollout.name, every, version + 1, needed)
    yield from commit("rollouts", [Step(writes=(write,), facts=(fact,))], on_rejected=unanswered_rejections)


def sift(context: ControllerContext) -> Rounds[None]:
    """Drop remembered partitions that no part names which was not in memory; a few parts are read in each event."""
    for rollout in list(context.rollouts.by_name.values()):
        sifting = rollout.sifting
        if sifting is None:
            continue
        found = yield from _named(rollout, sifting.parts[:READ_AT_ONCE], sifting.of)
        needed, left = sifting.needed | found, sifting.parts[READ_AT_ONCE:]
        following = evolve(sifting, parts=left, needed=needed) if left else None
        yield from apply("rollouts", [Step(facts=(MovedByHandSifted(rollout.name, following),))])
        if not left:
            yield from _write(context, rollout, (rollout.by_hand - sifting.of) | needed, len(needed))
        return


def _named(
    rollout: Rollout, parts: Iterable[int], moved: frozenset[TopicPartition]
) -> Rounds[frozenset[TopicPartition]]:
    """Return those of the moved partitions that parts of the plan name."""
    where = [paths.rollout_plan(rollout.name, first) for first in parts]
    found: set[TopicPartition] = set()
    for path, znode in zip(where, (yield from read(where)), strict=True):
        with suppress(UndecodableZnode):
            found.update(moved.intersection(rollouts.decode_partitions(path, b"" if znode is None else znode.data)))
    return frozenset(found)
