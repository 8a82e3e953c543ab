"""The rows of rollouts as a controller reads them: decoded, and checked for whether they make sense.

Other programs, operators and other releases write to the store as well. A row that decodes and makes no sense, such as
a phase that does not exist, a mark beyond the states of moves, or a limit of 0, must not reach the code that carries
rollouts out: it would fail there, and so would each next controller. All functions raise UndecodableZnode with the path
and the fault; `Senseless` is the part of it that the decoders of `transport.store.rollouts` do not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from controller.model.faults import replicas_fault
from controller.model.rollout_parts import CODES
from controller.rollout.states import HeldBy, MoveState, Phase
from transport.messages import UNKNOWN, UNLIMITED, RolloutMove, RolloutSettings
from transport.metadata import MAX_NUMBER, MAX_TEXT, TopicPartition, is_topic_id, is_topic_name
from transport.store import paths, rollouts
from transport.store.fields import UndecodableZnode, shown
from transport.store.rollouts import StoredMarks, StoredPart, StoredRollout

MAX_BYTES: Final = 2**53
"""The most bytes of a plan, or of one replica: 9 PB. Sums over parts fit the integers of the wire and of JSON."""

_MAX_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999; programs cannot show a later time."""

_PHASES: Final = frozenset(phase.value for phase in Phase)
_HOLDS: Final = frozenset({HeldBy.OPERATOR.value, HeldBy.FOREIGN_CONTROLLER.value})
"""The holds that are stored; a brake lets go without an order, so it is not."""

_MOVE_STATES: Final = frozenset(state.value for state in CODES)
_LIMITS: Final = ("into", "out_of", "leaders", "in_all", "bytes", "throttle")


class Senseless(UndecodableZnode):
    """A row that decodes and makes no sense."""


def read_state(name: str, data: bytes) -> StoredRollout:
    """Return the state of a rollout."""
    stored = rollouts.decode_state(name, data)
    fault = state_fault(stored)
    if fault is not None:
        raise Senseless(paths.rollout(name), fault)
    return stored


def read_moves(path: str, data: bytes, part: StoredPart) -> list[RolloutMove]:
    """Return the moves of a part of the plan."""
    moves = rollouts.decode_part(path, data)
    if len(moves) != part.moves:
        raise Senseless(path, f"has {len(moves):,} moves, and the state of the rollout says {part.moves:,}")
    for number, move in enumerate(moves):
        fault = plan_fault(move)
        if fault is not None:
            raise Senseless(path, f"move {number}: {fault}")
    return moves


def read_marks(path: str, data: bytes, part: StoredPart) -> StoredMarks:
    """Return the states of the moves of a part."""
    marks = rollouts.decode_marks(path, data)
    if len(marks.marks) != part.moves:
        raise Senseless(path, f"marks {len(marks.marks):,} moves, and the state of the rollout says {part.moves:,}")
    if max(marks.marks, default=0) >= len(CODES):
        raise Senseless(path, f"{max(marks.marks)} is not the state of a move: they are from 0 to {len(CODES) - 1}")
    for number, text in marks.why.items():
        if not 0 <= number < part.moves or len(text) > MAX_TEXT:
            raise Senseless(path, f"has a reason of a move {shown(number)} that does not exist, or too long a reason")
    return marks


def read_by_hand(name: str, data: bytes) -> frozenset[TopicPartition]:
    """Return the partitions that administrators have moved; any names, as they are only compared."""
    found = rollouts.decode_by_hand(paths.rollout_strangers(name), data)
    return frozenset(TopicPartition(*tp) for tp in found)


# --- the rules ----------------------------------------------------------------------------------------------------


def state_fault(stored: StoredRollout) -> str | None:
    """Return why the state of a rollout makes no sense, None if it does."""
    if stored.phase not in _PHASES:
        return f"phase must be one of {', '.join(sorted(_PHASES))}, is {shown(stored.phase)}"
    strange = sorted(set(stored.holds) - _HOLDS)
    if strange:
        return f"holds must be among {', '.join(sorted(_HOLDS))}, are {shown(strange)}"
    if max(len(stored.digest), len(stored.by)) > MAX_TEXT:
        return f"digest and by must have up to {MAX_TEXT} characters"
    if not 0 <= stored.number <= MAX_BYTES:
        return f"number must be from 0 to {MAX_BYTES}, is {shown(stored.number)}"
    if not 0 <= stored.started_ms <= _MAX_MS:
        return f"started_ms must be a time from 1970 to 9999, is {shown(stored.started_ms)}"
    if not all(0 <= broker <= MAX_NUMBER for broker in stored.brokers):
        return f"brokers must be broker ids, are {shown(stored.brokers)}"
    return settings_fault(stored.settings) or _parts_fault(stored.parts)


def settings_fault(settings: RolloutSettings) -> str | None:
    """Return why settings cannot be those of a rollout, None if they can."""
    for name in _LIMITS:
        value = getattr(settings, name)
        if not 0 < value <= UNLIMITED:
            return f"each limit, and the throttle, must be greater than 0 and at most {UNLIMITED}: {name} is {value}"
    if max(len(settings.pause_file), len(settings.go_url)) > MAX_TEXT:
        return f"pause_file and go_url must have up to {MAX_TEXT} characters"
    return None


def plan_fault(move: RolloutMove) -> str | None:
    """Return why a move of a plan makes no sense, whatever the cluster is like; None if it does."""
    if not 0 <= move.partition <= MAX_NUMBER:
        return f"there can be no partition {shown(move.partition)}"
    if not UNKNOWN <= move.size <= MAX_BYTES:
        return f"size must be in bytes, at most {MAX_BYTES}, or {UNKNOWN} if it is not known: it is {shown(move.size)}"
    return _topic_fault(move.topic, move.topic_id) or _replicas_fault(move.before) or _replicas_fault(move.after)


# The moves of a plan share few topics and lists of replicas.
@lru_cache(maxsize=1 << 12)
def _topic_fault(name: str, topic_id: str) -> str | None:
    if not is_topic_name(name):
        return f"a topic cannot have the name {shown(name)}"
    return f"{shown(topic_id)} is not the id of a topic" if topic_id and not is_topic_id(topic_id) else None


@lru_cache(maxsize=1 << 12)
def _replicas_fault(replicas: tuple[int, ...]) -> str | None:
    text = replicas_fault(replicas)
    return None if text is None else f"{text:.200}"


def _parts_fault(parts: Sequence[StoredPart]) -> str | None:
    """Return why the parts of a plan do not make up a plan."""
    for part in parts:
        numbers = (part.first, part.moves, part.bytes, *part.tally.values())
        if min(numbers) < 0 or max(*numbers, abs(part.left)) > MAX_BYTES or part.first + part.moves > MAX_NUMBER:
            return f"a part has numbers out of bounds: {shown(part)}"
        if not part.tally.keys() <= _MOVE_STATES or sum(part.tally.values()) > part.moves:
            return f"part {part.first} has {part.moves} moves, whose states cannot be {shown(part.tally)}"
        if not 0 <= part.deleted <= part.tally.get(MoveState.FAILED.value, 0):
            return f"part {part.first} cannot have {shown(part.deleted)} moves of deleted topics"
    for one, following in pairwise(parts):
        if following.first < one.first + one.moves:
            return f"parts {one.first} and {following.first} overlap, or are not in order"
    if sum(part.bytes for part in parts) > MAX_BYTES:
        return f"its parts copy more than {MAX_BYTES} bytes"
    return None
