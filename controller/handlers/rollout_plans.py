"""Plans of rollouts: uploaded in parts, started, found again by the next controller, and removed.

A part is in the store before its request is answered, and the state, which makes the rollout exist, is written last. A
plan whose upload has not come to its end is removed by the next controller.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from controller.handlers.rollout_quarantine import quarantine, refuse_unusable
from controller.handlers.rollout_records import not_written, write_state
from controller.model import rollout_rows
from controller.model.context import ControllerContext
from controller.model.rollout_facts import MovedByHand, RolloutGone, RolloutWritten, Upload, UploadGrown
from controller.model.rounds import Rounds, Step, apply, commit, descendants, logged, read, until_none_is_left
from controller.rollout.orders import with_throttle
from controller.rollout.states import HeldBy, Phase
from transport.errors import ApiError, ErrorCode, Fault
from transport.log import get_logger
from transport.messages import (
    UNTHROTTLED,
    PartitionError,
    RolloutMove,
    RolloutSettings,
    StartRolloutRequest,
    StartRolloutResponse,
    UploadRolloutRequest,
    UploadRolloutResponse,
)
from transport.store import paths, rollouts
from transport.store.fields import UndecodableZnode
from transport.store.protocol import Create, Delete, Op, Set, Znode, write_over
from transport.store.rollouts import StoredPart, StoredRollout

log = get_logger(__name__)

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")

_GROWTH: Final = 3
"""The most by which the state grows while a rollout runs, because each part then has a tally."""

_BYTES_OF_A_REASON: Final = 40
"""The room in the marks of a part for each move, as they say of a move why it was not made; compressed."""


# --- uploading ----------------------------------------------------------------------------------------------------


def upload(context: ControllerContext, request: UploadRolloutRequest) -> Rounds[UploadRolloutResponse]:
    """Store a part of a plan, without the moves that cannot be made. Raises ApiError."""
    _require_name(request.name)
    refuse_unusable(context, request.name)
    known = context.rollouts.by_name.get(request.name)
    if known is not None:
        if known.stored.digest == request.digest:
            return UploadRolloutResponse()
        raise _taken(request.name)
    sound, left_out = _judged(context, request.moves)
    if left_out and not request.skips:
        return UploadRolloutResponse(tuple(left_out))
    yield from _make_room(context, request)
    parts = _parts(context, request.first, sound)
    steps = yield from _storing(request.name, parts)
    rejected = list[Step]()
    refused = yield from commit("rollouts", steps, on_rejected=rejected.extend)
    if refused or rejected:
        raise ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, f"rollout {request.name}: a part was not written: try again")
    before = context.rollouts.uploads.get(request.name, Upload(request.digest))
    stored = {first: StoredPart(first, len(moves), size, size) for first, moves, size in _measured(parts)}
    # A part that is uploaded again may have been cut otherwise before.
    end = request.first + len(request.moves)
    others = {first: part for first, part in before.parts.items() if not request.first <= first < end}
    grown = Upload(request.digest, {**others, **stored}, {**before.sent, request.first: len(request.moves)})
    yield from apply("rollouts", [Step(facts=(UploadGrown(request.name, grown),))])
    return UploadRolloutResponse(tuple(left_out))


def _require_name(name: str) -> None:
    if _NAME.fullmatch(name) is None or name in {".", ".."}:
        text = f"{name!r:.120} cannot name a rollout: give 1 to 100 letters, digits, '.', '_' and '-'"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)


def _taken(name: str) -> ApiError:
    text = f"there is a rollout {name} of another plan: give another name, or remove it if it is over"
    return ApiError(ErrorCode.DUPLICATE_RESOURCE, text)


def _judged(context: ControllerContext, moves: Sequence[RolloutMove]) -> tuple[list[RolloutMove], list[PartitionError]]:
    """Return the moves with what the cluster knows of them, and those that cannot be made."""
    sound: list[RolloutMove] = []
    left_out: list[PartitionError] = []
    for move in moves:
        fault = _fault(context, move)
        if fault is None:
            before = move.before or context.assignment(move.tp).replicas
            sound.append(replace(move, before=before, topic_id=context.topic_id(move.topic)))
        else:
            left_out.append(PartitionError(*move.tp, *fault))
    return sound, left_out


def _fault(context: ControllerContext, move: RolloutMove) -> Fault | None:
    now = context.assignment(move.tp)
    if not now.replicas or move.topic in context.deletions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
    if move.topic_id and move.topic_id != context.topic_id(move.topic):
        return ErrorCode.INCONSISTENT_TOPIC_ID, "its topic was deleted and created again"
    before = move.before or now.replicas
    text = rollout_rows.plan_fault(replace(move, before=before, topic_id=context.topic_id(move.topic)))
    if text is not None:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    if now.is_being_reassigned:
        return ErrorCode.REASSIGNMENT_IN_PROGRESS, f"is being moved to {list(now.target_replicas)}"
    if move.before and now.replicas not in (move.before, move.after):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"has replicas {list(now.replicas)}, not {list(move.before)}"
    return None


def _make_room(context: ControllerContext, request: UploadRolloutRequest) -> Rounds[None]:
    """Remove what an upload of another plan has left under this name, and create what is above the parts."""
    known = context.rollouts.uploads.get(request.name)
    if known is not None and known.digest != request.digest and not (yield from remove(request.name)):
        raise not_written(request.name)
    root = paths.rollout(request.name)
    wanted = [paths.ROLLOUTS, root, paths.rollout_plans(request.name), f"{root}/marks"]
    found = yield from read(wanted)
    missing: tuple[Op, ...] = tuple(Create(path) for path, there in zip(wanted, found, strict=True) if there is None)
    creation = [Step(writes=missing)] if missing else []
    rejected = list[Step]()
    yield from commit("rollouts", creation, on_rejected=rejected.extend)
    if rejected:
        raise not_written(request.name)


Parts = Mapping[int, tuple[Sequence[RolloutMove], bytes]]


def _parts(context: ControllerContext, first: int, moves: Sequence[RolloutMove]) -> Parts:
    """Return moves, encoded, in as many parts as the size of znodes requires."""
    if not moves:
        return {}
    data, most = rollouts.encode_part(moves), context.config.request_limits.chunk
    if max(len(data), len(moves) * _BYTES_OF_A_REASON) <= most or len(moves) == 1:
        return {first: (moves, data)}
    half = len(moves) // 2
    return {**_parts(context, first, moves[:half]), **_parts(context, first + half, moves[half:])}


def _measured(parts: Parts) -> list[tuple[int, Sequence[RolloutMove], int]]:
    return [(first, moves, rollouts.size_of(moves)) for first, (moves, _) in parts.items()]


def _storing(name: str, parts: Parts) -> Rounds[list[Step]]:
    where = {first: paths.rollout_plan(name, first) for first in parts}
    found = yield from read(where.values())
    znodes = dict(zip(where, found, strict=True))
    return [Step(writes=(write_over(znodes[first], where[first], data),)) for first, (_, data) in parts.items()]


# --- starting -----------------------------------------------------------------------------------------------------


def start(context: ControllerContext, request: StartRolloutRequest, now_ms: int) -> Rounds[StartRolloutResponse]:
    """Write the state of a rollout whose plan has been uploaded. Raises ApiError."""
    _require_name(request.name)
    refuse_unusable(context, request.name)
    settings = sound(request.settings)
    known = context.rollouts.by_name.get(request.name)
    if known is not None and known.stored.digest != request.digest:
        raise _taken(request.name)
    if known is None:
        yield from _create(context, replace(request, settings=settings), now_ms)
    queue = [one.name for one in context.rollouts.queue]
    place = queue.index(request.name) if request.name in queue else -1
    return StartRolloutResponse(context.rollouts.by_name[request.name].stored.moves, place)


def _create(context: ControllerContext, request: StartRolloutRequest, now_ms: int) -> Rounds[None]:
    uploaded = context.rollouts.uploads.get(request.name)
    sent = 0 if uploaded is None or uploaded.digest != request.digest else sum(uploaded.sent.values())
    if uploaded is None or sent != request.total:
        text = f"rollout {request.name}: {sent:,} of {request.total:,} moves have been uploaded: upload them again"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    stored = StoredRollout(
        request.digest,
        next_number(context),
        now_ms,
        request.by,
        Phase.RUNNING.value,
        request.settings,
        tuple(part for _, part in sorted(uploaded.parts.items())),
        tuple(context.able_brokers()),
        throttled=request.settings.throttle != UNTHROTTLED,
    )
    fault = rollout_rows.state_fault(stored)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"rollout {request.name} cannot be started: {fault}")
    path, data = paths.rollout(request.name), rollouts.encode_state(stored)
    if len(data) * _GROWTH > context.config.request_limits.group:
        text = (
            f"its {stored.moves:,} moves have too many parts for {context.config.request_limits.text}: split the plan"
        )
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    [znode] = yield from read([path])
    version = -1 if znode is None else znode.stat.version
    write = Set(path, data, version)
    step = Step(writes=(write,), facts=(RolloutWritten(request.name, stored, version + 1),))
    rejected = list[Step]()
    refused = yield from commit("rollouts", [step], on_rejected=rejected.extend)
    if rejected:
        raise not_written(request.name)
    if refused or request.name not in context.rollouts.by_name:
        text = f"rollout {request.name} was not written: upload its plan again"
        raise ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, text)
    log.info("rollout started", rollout=request.name, moves=stored.moves, by=request.by)


def sound(settings: RolloutSettings) -> RolloutSettings:
    """Return settings; one that finds its throttle by itself has one to begin with. Raises ApiError."""
    fault = rollout_rows.settings_fault(settings)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, fault)
    return with_throttle(settings)


def next_number(context: ControllerContext) -> int:
    """Return the number of a rollout that comes after all others."""
    return max((one.stored.number for one in context.rollouts.by_name.values()), default=0) + 1


# --- found again, and removed -------------------------------------------------------------------------------------


def load(context: ControllerContext, names: Sequence[str]) -> Rounds[None]:
    """Load the states of rollouts, and remove what uploads have left that did not come to their end."""
    if not names:
        return
    wanted = [*map(paths.rollout, names), *map(paths.rollout_strangers, names)]
    [holder, *znodes] = yield from read([paths.CONTROLLER, *wanted])
    for name, znode, by_hand in zip(names, znodes, znodes[len(names) :], strict=False):
        if znode is None:
            continue
        if not znode.data:
            yield from remove(name)
            continue
        try:
            stored = rollout_rows.read_state(name, znode.data)
            moved = None if by_hand is None else rollout_rows.read_by_hand(name, by_hand.data)
        except UndecodableZnode as fault:
            yield from quarantine(name, fault)
            continue
        yield from apply("observed", [Step(facts=(RolloutWritten(name, stored, znode.stat.version),))])
        yield from _hold_after_others(context, name, znode, holder)
        if by_hand is not None and moved is not None:
            yield from apply("observed", [Step(facts=(MovedByHand(name, moved, by_hand.stat.version),))])


def _hold_after_others(context: ControllerContext, name: str, state: Znode, holder: Znode | None) -> Rounds[None]:
    """Pause a rollout that has not been written since Kafka's own controller was last in office.

    Our `/controller` outlives each of our controllers there, and is older than the state unless another was in between.
    """
    rollout = context.rollouts.by_name[name]
    is_older = holder is not None and state.stat.mzxid < holder.stat.czxid
    if context.config.kafka and is_older and not rollout.state.is_over:
        holds = sorted({*rollout.stored.holds, HeldBy.FOREIGN_CONTROLLER.value})
        log.warning("a rollout is paused: another controller has been in office", rollout=name)
        if not (yield from write_state(rollout, holds=tuple(holds))):
            # It must not go on before its operator has looked at it.
            fault = "another controller has been in office, and the pause for that cannot be written"
            yield from quarantine(name, UndecodableZnode(paths.rollout(name), fault))


def remove(name: str) -> Rounds[bool]:
    """Remove a rollout, or what an upload has left, from the store.

    Its state goes first: without it, what may be left is removed by the next controller. Return False if it stays.
    """
    path, rejected = paths.rollout(name), list[Step]()

    def clear(pending: list[str]) -> Rounds[list[str]]:
        [znode] = yield from read([path])
        if znode is None or not znode.data:
            return []
        step = Step(writes=(Set(path, b"", znode.stat.version),), facts=(RolloutGone(name),))
        stale = yield from commit("rollouts", [step], on_rejected=rejected.extend)
        return pending if stale else []

    yield from until_none_is_left("rollouts", [name], clear)
    if rejected:
        return False
    [below] = yield from descendants([path])
    deletes = [Step(writes=(Delete(each),)) for each in (*(below or ()), path)]
    left = logged("the rest of a removed rollout stays until the next controller")
    yield from commit("rollouts", deletes, on_rejected=left)
    yield from apply("rollouts", [Step(facts=(RolloutGone(name),))])
    return True
