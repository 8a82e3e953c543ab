"""Writing the znodes of rollouts: states, and the marks of moves."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from controller.model.context import ControllerContext
from controller.model.facts import Fact
from controller.model.rollout import Rollout
from controller.model.rollout_facts import MovesMarked, PartsClosed, RolloutGone, RolloutWritten
from controller.model.rollout_parts import Part
from controller.model.rounds import (
    Rounds,
    Step,
    apply,
    commit,
    commit_each,
    existing,
    read,
    until_none_is_left,
)
from controller.rollout.states import Happening, MoveState
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.store import paths, rollouts
from transport.store.protocol import Create, Set

log = get_logger(__name__)

Changes = Mapping[int, tuple[MoveState, str]]
"""The new states of moves of a part, by number, with the reasons of those that are not as planned."""


def write_state(rollout: Rollout, *also: Fact, **fields: object) -> Rounds[bool]:
    """Change fields of a rollout's state, over whatever its znode has; `also` becomes true with it.

    Return False if nothing has changed, because the store rejects the write or somebody has removed the rollout.
    """
    stored = replace(rollout.stored, **fields)
    path, data = paths.rollout(rollout.name), rollouts.encode_state(stored)
    version, failed = rollout.version, list[object]()

    def write(pending: list[str]) -> Rounds[list[str]]:
        nonlocal version
        step = Step(
            writes=(Set(path, data, version),), facts=(RolloutWritten(rollout.name, stored, version + 1), *also)
        )
        refused = yield from commit("rollouts", [step], on_rejected=failed.extend)
        if not refused:
            return []
        if not (yield from _is_there(rollout)):
            failed.append(step)
            return []
        [znode] = yield from read([path])
        version = -1 if znode is None else znode.stat.version
        return pending

    yield from until_none_is_left("rollouts", [rollout.name], write)
    if failed:
        log.warning("the state of a rollout was not written, and stays as it was", rollout=rollout.name)
    return not failed


def not_written(name: str) -> ApiError:
    """Return the answer to an order that the store has not taken."""
    text = f"rollout {name} stays as it was: its znodes cannot be written: see the controller's log"
    return ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, text)


def happen(rollout: Rollout, happening: Happening, **fields: object) -> Rounds[bool]:
    """Change the phase and the holds of a rollout as its tables say; return False as `write_state` does."""
    before, state = rollout.state, rollout.state.after(happening)
    closed: tuple[Fact, ...] = ()
    if state.phase is not before.phase and (happening is Happening.LANDED or state.is_over):
        every = {part.first for part in rollout.stored.parts}
        goes_back = not state.is_over
        fields = {"parts": rollout.to_undo() if goes_back else rollout.summarised(closes=every), **fields}
        closed = (PartsClosed(rollout.name),)
    holds = tuple(sorted(hold.value for hold in state.holds))
    is_written = yield from write_state(rollout, *closed, phase=state.phase.value, holds=holds, **fields)
    if is_written:
        log.info("rollout", rollout=rollout.name, state=str(state))
    return is_written


def write_marks(rollout: Rollout, changes: Mapping[int, Changes]) -> Rounds[list[int]]:
    """Write the states of moves, by part; what has not been written is not known to the context either.

    Return the parts that the store rejects, and those of removed rollouts.
    """
    versions = {first: rollout.parts[first].version for first, found in changes.items() if found}
    failed = list[int]()

    def write(pending: list[int]) -> Rounds[list[int]]:
        steps = {first: _marks(rollout, rollout.parts[first], changes[first], versions[first]) for first in pending}
        again = yield from commit_each("marks", steps, on_rejected=failed.extend)
        if not again:
            return []
        if not (yield from _is_there(rollout)):
            failed.extend(again)
            return []
        znodes = yield from read(paths.rollout_marks(rollout.name, first) for first in again)
        for first, znode in zip(again, znodes, strict=True):
            versions[first] = -1 if znode is None else znode.stat.version
        return again

    yield from until_none_is_left("marks", list(versions), write)
    if failed:
        log.warning("the states of moves were not written, and stay as they were", rollout=rollout.name, parts=failed)
    return failed


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
