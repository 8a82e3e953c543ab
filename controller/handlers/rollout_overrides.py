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
from controller.model.rollout import Rollout
from controller.model.rollout_facts import MovedByHand, MovedByHandSifted, Sifting
from controller.model.rounds import Rounds, Step, apply, commit, read, until_none_is_left
from controller.rollout.states import MoveState
from transport.errors import ErrorCode, Fault
from transport.log import get_logger
from transport.metadata import TopicPartition
from transport.store import paths, rollouts
from transport.store.fields import UndecodableZnode
from transport.store.protocol import Create, Set

log = get_logger(__name__)

BY_HAND: Final = "an administrator has moved it"

_LOOKED_THROUGH: Final = 1_000
"""Once more partitions are remembered, and again whenever they are twice as many, those not in the plan are dropped."""

READ_AT_ONCE: Final = 5
"""The parts of the plan that are read for this in one event."""


def take_out(context: ControllerContext, partitions: Collection[TopicPartition]) -> Rounds[dict[TopicPartition, Fault]]:
    """Take partitions out of all rollouts, for good, because an administrator is about to move them.

    Return the faults of those that a rollout cannot be made to forget: it would move them again after a failover.
    """
    if not context.rollouts.by_name or not partitions:
        return {}
    moved = frozenset(partitions)
    changes: defaultdict[str, defaultdict[int, dict[int, tuple[MoveState, str]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for rollout, part, number in context.rollouts.open_moves(moved):
        changes[rollout.name][part.first][number] = MoveState.OVERRIDDEN, BY_HAND
    yield from rollout_throttles.lift(context, [tp for tp in moved if tp in context.rollouts.flying])
    faults: dict[TopicPartition, Fault] = {}
    for name, found in changes.items():
        rollout = context.rollouts.by_name[name]
        parts = dict(rollout.parts)
        for first in (yield from write_marks(rollout, found)):
            faults |= {parts[first].moves[number].tp: _fault(name) for number in found[first]}
    for rollout in list(context.rollouts.by_name.values()):
        forgotten = yield from _remember(context, rollout, moved - faults.keys())
        faults |= dict.fromkeys(forgotten, _fault(rollout.name))
    return faults


def _fault(name: str) -> Fault:
    text = f"rollout {name} would move it again, as its znodes cannot be written: see the controller's log"
    return ErrorCode.OPERATION_NOT_ATTEMPTED, text


def _remember(
    context: ControllerContext, rollout: Rollout, moved: frozenset[TopicPartition]
) -> Rounds[frozenset[TopicPartition]]:
    """Remember what was moved while its part of the plan is not in memory: before it is read, or before an undo.

    Return the partitions of the plan that cannot be remembered.
    """
    if moved <= rollout.by_hand or not rollout.closed_parts:
        return frozenset()
    every = rollout.by_hand | moved
    if len(every) > max(_LOOKED_THROUGH, 2 * rollout.by_hand_needed) and rollout.sifting is None:
        sifting = Sifting(every, tuple(part.first for part in rollout.closed_parts))
        yield from apply("rollouts", [Step(facts=(MovedByHandSifted(rollout.name, sifting),))])
    if (yield from _write(context, rollout, every)):
        return frozenset()
    return (yield from _named(rollout, [part.first for part in rollout.closed_parts], moved))


def _write(
    context: ControllerContext, rollout: Rollout, every: frozenset[TopicPartition], needed: int = 0
) -> Rounds[bool]:
    """Write the partitions that are remembered, over whatever the znode has; return False if the store rejects it."""
    path, data = paths.rollout_strangers(rollout.name), rollouts.encode_by_hand(list(every))
    if len(data) > context.config.request_limits.chunk:
        log.warning("too many moves by hand: a rollout forgets the latest ones", rollout=rollout.name, moves=len(every))
        return True
    version, rejected = rollout.by_hand_version, list[Step]()

    def write(pending: list[str]) -> Rounds[list[str]]:
        nonlocal version
        op = Create(path, data) if version < 0 else Set(path, data, version)
        fact = MovedByHand(rollout.name, every, version + 1, needed)
        step = Step(writes=(op,), facts=(fact,))
        if not (yield from commit("rollouts", [step], on_rejected=rejected.extend)):
            return []
        [parent, znode] = yield from read([paths.rollout(rollout.name), path])
        version = -1 if znode is None else znode.stat.version
        return [] if parent is None else pending

    yield from until_none_is_left("rollouts", [rollout.name], write)
    return not rejected


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
