"""The znodes of rollouts, `/klamm/rollouts/NAME` and below.

    NAME                the state: small, rewritten when something other than the progress changes; empty at first
    NAME/moves/FIRST    a part of the plan, from the move of this number on: written once, columns, compressed
    NAME/marks/FIRST    the progress of that part: a byte for each move, compressed; missing if none has begun
    NAME/by_hand        partitions that administrators have moved, while parts of the plan have not been read

A rollout exists once its state has been written, which is after its plan.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from transport.messages import UNKNOWN, RolloutMove, RolloutSettings
from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.fields import UndecodableZnode, require_readable

S = TypeVar("S")

_SETTINGS: Final = get_type_hints(RolloutSettings)
"""The types of settings, by name."""

_MOST_INFLATED: Final = 1 << 26
"""The most bytes that a znode may inflate to, so that a damaged one does not exhaust the memory."""


class StoredPart(msgspec.Struct, frozen=True):
    """A part of a plan: its first number, its moves, and the bytes that they copy.

    A part is opened before the first of its moves begins, and closed when none is left. Until it is opened, and once it
    is closed, `tally` has the number of moves in each state that is not pending, and `left` the bytes that remain.
    `deleted` of those that count as failed there are moves of topics that were deleted.
    """

    first: int
    moves: int
    bytes: int
    left: int
    opened: bool = False
    closed: bool = False
    tally: dict[str, int] = {}
    deleted: int = 0


class StoredRollout(msgspec.Struct, frozen=True):
    """The state of a rollout. Rollouts run one after the other, by `number`.

    `brokers` are those that were alive when it began: it pauses while one of them is dead. `throttled` says that it has
    set throttles, which are to be lifted at its end.
    """

    digest: str
    number: int
    started_ms: int
    by: str
    phase: str
    settings: RolloutSettings
    parts: tuple[StoredPart, ...]
    brokers: tuple[int, ...]
    holds: tuple[str, ...] = ()
    throttled: bool = False
    version: int = 1

    @property
    def moves(self) -> int:
        """The number of moves."""
        return sum(part.moves for part in self.parts)


class StoredMarks(msgspec.Struct, frozen=True):
    """The states of a part's moves, as the codes of `controller.model.rollouts`, and why some are as they are."""

    marks: bytes
    why: dict[int, str] = {}


class _Columns(msgspec.Struct, array_like=True, frozen=True):
    """Moves in columns: topics with their ids, lists of replicas, and for each move the places of its values."""

    topics: list[tuple[str, str]]
    replicas: list[tuple[int, ...]]
    topic: list[int]
    partition: list[int]
    before: list[int]
    after: list[int]
    size: list[int]


def encode_state(state: StoredRollout) -> bytes:
    """Encode the state of a rollout."""
    settings = msgspec.structs.asdict(state.settings)
    return msgspec.json.encode({**msgspec.structs.asdict(state), "settings": settings})


def decode_state(name: str, data: bytes) -> StoredRollout:
    """Return the state of a rollout. Raises UndecodableZnode, as all functions here do.

    Keys that are not known, also among the settings, are those of a later release: they are ignored.
    """
    path = paths.rollout(name)
    value = _decoded(path, data, dict[str, Any], msgspec.json.decode)
    try:
        settings = _decode_settings(value.pop("settings"))
        return msgspec.convert({**value, "settings": settings}, StoredRollout)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise UndecodableZnode(path, f"not the state of a rollout ({error!s:.200})") from error


def _decode_settings(value: object) -> RolloutSettings:
    """Return settings, each of its type. Raises TypeError."""
    if not isinstance(value, dict):
        raise TypeError("settings must be an object")
    known = {name: item for name, item in value.items() if name in _SETTINGS}
    for name, item in known.items():
        try:
            msgspec.convert(item, _SETTINGS[name])
        except msgspec.ValidationError as error:
            raise TypeError(f"settings: {name}: {error}") from error
    return RolloutSettings(**known)


def encode_part(moves: Sequence[RolloutMove]) -> bytes:
    """Encode a part of a plan."""
    topics: dict[tuple[str, str], int] = {}
    replicas: dict[tuple[int, ...], int] = {}
    columns = _Columns(
        [],
        [],
        [topics.setdefault((move.topic, move.topic_id), len(topics)) for move in moves],
        [move.partition for move in moves],
        [replicas.setdefault(move.before, len(replicas)) for move in moves],
        [replicas.setdefault(move.after, len(replicas)) for move in moves],
        [move.size for move in moves],
    )
    columns.topics.extend(topics)
    columns.replicas.extend(replicas)
    return _packed(columns)


def decode_part(path: str, data: bytes) -> list[RolloutMove]:
    """Return a part of a plan."""
    columns = _unpacked(path, data, _Columns)
    _require_fitting(path, columns)
    rows = zip(columns.topic, columns.partition, columns.before, columns.after, columns.size, strict=True)
    return [
        RolloutMove(columns.topics[t][0], p, columns.replicas[a], columns.replicas[b], columns.topics[t][1], size)
        for t, p, b, a, size in rows
    ]


def decode_partitions(path: str, data: bytes) -> list[TopicPartition]:
    """Return the partitions of a part of a plan."""
    columns = _unpacked(path, data, _Columns)
    _require_fitting(path, columns)
    return [TopicPartition(columns.topics[t][0], p) for t, p in zip(columns.topic, columns.partition, strict=True)]


def _require_fitting(path: str, columns: _Columns) -> None:
    """Raise UndecodableZnode if columns differ in length, or have places of topics or replicas that do not exist."""
    lengths = {len(each) for each in (columns.topic, columns.partition, columns.before, columns.after, columns.size)}
    replicas, topics = [*columns.before, *columns.after], columns.topic
    is_sound = len(lengths) == 1 and min([*replicas, *topics], default=0) >= 0
    is_sound = is_sound and max(replicas, default=-1) < len(columns.replicas)
    if not is_sound or max(topics, default=-1) >= len(columns.topics):
        raise UndecodableZnode(path, "its columns do not fit each other")


def encode_marks(marks: StoredMarks) -> bytes:
    """Encode the progress of a part."""
    return _packed(marks)


def decode_marks(path: str, data: bytes) -> StoredMarks:
    """Return the progress of a part."""
    return _unpacked(path, data, StoredMarks)


def encode_by_hand(partitions: Sequence[TopicPartition]) -> bytes:
    """Encode a list of partitions that administrators have moved."""
    return _packed(sorted(partitions))


def decode_by_hand(path: str, data: bytes) -> list[TopicPartition]:
    """Return the list of partitions that administrators have moved."""
    return _unpacked(path, data, list[TopicPartition])


def size_of(moves: Sequence[RolloutMove]) -> int:
    """Return the bytes that moves copy, as far as their sizes are known."""
    known = [move for move in moves if move.size != UNKNOWN]
    return sum(move.size * len(set(move.after).difference(move.before)) for move in known)


def _packed(value: object) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(value), 3)


def _unpacked(path: str, data: bytes, kind: type[S]) -> S:
    require_readable(path, data)
    inflating = zlib.decompressobj()
    try:
        plain = inflating.decompress(data, _MOST_INFLATED)
    except zlib.error as error:
        raise UndecodableZnode(path, f"not compressed ({error})") from error
    if not inflating.eof:
        raise UndecodableZnode(path, "cut off, or too large")
    return _decoded(path, plain, kind, msgspec.msgpack.decode)


def _decoded(path: str, data: bytes, kind: type[S], decode: Any) -> S:  # noqa: ANN401  one of msgspec's functions
    require_readable(path, data)
    try:
        found: S = decode(data, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise UndecodableZnode(path, f"damaged ({error!s:.200})") from error
    return found
