"""Writing the znodes of rollouts: states, and the marks of moves."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from controller.model.context import ControllerContext
from controller.model.facts import Fact
from controller.model.rollout_facts import MovesMarked, PartsClosed, RolloutGone, RolloutWritten
from controller.model.rollout_parts import Part
from controller.model.rollouts import Rollout
from controller.model.rounds import (
    Rounds,
    Step,
    apply,
    commit,
    existing,
    read,
    unanswered_rejections,
    until_none_is_left,
)
from controller.rollout.states import Happening, MoveState
from transport.log import get_logger
from transport.store import paths, rollouts
from transport.store.protocol import Create, Set

log = get_logger(__name__)

Changes = Mapping[int, tuple[MoveState, str]]
"""The new states of moves of a part, by number, with the reasons of those that are not as planned."""


def write_state(rollout: Rollout, *also: Fact, **fields: object) -> Rounds[None]:
    """Change fields of a rollout's state, over whatever its znode has; `also` becomes true with it."""
    stored = replace(rollout.stored, **fields)
    path, data = paths.rollout(rollout.name), rollouts.encode_state(stored)
    version = rollout.version

    def write(pending: list[str]) -> Rounds[list[str]]:
        nonlocal version
        step = Step(
            writes=(Set(path, data, version),), facts=(RolloutWritten(rollout.name, stored, version + 1), *also)
        )
        refused = yield from commit("rollouts", [step], on_rejected=unanswered_rejections)
        if not refused or not (yield from _is_there(rollout)):
            return []
        [znode] = yield from read([path])
        version = -1 if znode is None else znode.stat.version
        return pending

    yield from until_none_is_left("rollouts", [rollout.name], write)


def happen(rollout: Rollout, happening: Happening, **fields: object) -> Rounds[None]:
    """Change the phase and the holds of a rollout as its tables say."""
    before, state = rollout.state, rollout.state.after(happening)
    closed: tuple[Fact, ...] = ()
    if state.phase is not before.phase and (happening is Happening.LANDED or state.is_over):
        every = {part.first for part in rollout.stored.parts}
        goes_back = not state.is_over
        fields = {"parts": rollout.to_undo() if goes_back else rollout.summarised(closes=every), **fields}
        closed = (PartsClosed(rollout.name),)
    holds = tuple(sorted(hold.value for hold in state.holds))
    yield from write_state(rollout, *closed, phase=state.phase.value, holds=holds, **fields)
    log.info("rollout", rollout=rollout.name, state=str(state))


def write_marks(rollout: Rollout, changes: Mapping[int, Changes]) -> Rounds[None]:
    """Write the states of moves, by part; what has not been written is not known to the context either."""
    versions = {first: rollout.parts[first].version for first, found in changes.items() if found}

    def write(pending: list[int]) -> Rounds[list[int]]:
        steps = {first: _marks(rollout, rollout.parts[first], changes[first], versions[first]) for first in pending}
        refused = yield from commit("marks", list(steps.values()), on_rejected=unanswered_rejections)
        again = [first for first, step in steps.items() if step in refused]
        if not again or not (yield from _is_there(rollout)):
            return []
        znodes = yield from read(paths.rollout_marks(rollout.name, first) for first in again)
        for first, znode in zip(again, znodes, strict=True):
            versions[first] = -1 if znode is None else znode.stat.version
        return again

    yield from until_none_is_left("marks", list(versions), write)


def confirmed(
    context: ControllerContext, rollout: Rollout, changes: Mapping[int, Changes]
) -> Rounds[dict[int, Changes]]:
    """Return the new states of moves, without those of topics that may only seem to be deleted.

    The context has no topic with a znode that cannot be read, or was created a moment ago. Its moves wait.
    """
    deleted = {
        rollout.parts[first].moves[number].topic
        for first, found in changes.items()
        for number, (state, _) in found.items()
        if state is MoveState.DELETED
    }
    there = yield from existing(paths.topic, sorted(deleted.difference(context.deletions)))
    if not there:
        return dict(changes)
    sound: dict[int, Changes] = {}
    for first, found in changes.items():
        moves = rollout.parts[first].moves
        sound[first] = {
            number: change
            for number, change in found.items()
            if change[0] is not MoveState.DELETED or moves[number].topic not in there
        }
    return sound


def _marks(rollout: Rollout, part: Part, changes: Changes, version: int) -> Step:
    path, data = paths.rollout_marks(rollout.name, part.first), rollouts.encode_marks(part.stored(changes))
    write = Create(path, data) if version < 0 else Set(path, data, version)
    tps = tuple(part.moves[number].tp for number in changes)
    return Step(tps, (write,), (MovesMarked(rollout.name, part.first, changes, version + 1),))


def _is_there(rollout: Rollout) -> Rounds[bool]:
    """Return whether a rollout is still in the store; forget one that somebody has removed."""
    needed = [paths.rollout(rollout.name), f"{paths.rollout(rollout.name)}/marks"]
    found = yield from read(needed)
    if None not in found:
        return True
    log.error("a rollout ends, as somebody has removed its znodes", rollout=rollout.name)
    yield from apply("rollouts", [Step(facts=(RolloutGone(rollout.name),))])
    return False
