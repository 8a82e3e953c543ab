"""Rows that others write into the metadata store: a valid one of each kind, and invalid values for its fields."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from attrs import evolve, field, frozen

from transport.metadata import TopicPartition
from transport.store import paths

TOPIC: Final = "theirs"
TP: Final = TopicPartition(TOPIC, 0)
ID: Final = "mK1qW5yGTWa4mNnWjZ3zbA"
STRANGER: Final = 9
"""The id of a broker and a controller that never existed."""

DEEP: Final = "lists within lists"
"""Stands for a value that can be read but not written again."""

_SIDES: Final = ("leader", "follower")
ROLLOUT: Final = "theirs-too"
"""The name of a rollout that operators have not started."""

MAX_BYTE: Final = 255

_PARTITION: Final = {"topic": TOPIC, "partition": 0}

Place = tuple[str | int, ...]
"""A place in a JSON value: keys and indexes; the last may be a key that stands for itself, see `places`."""


@frozen
class Row:
    """A znode: its path and its contents, None for no data. `parents` have to exist before.

    A row that is packed is compressed MessagePack, as the larger rows of rollouts are; others are JSON.
    """

    path: str
    value: Any = field(default=None, repr=False)
    parents: tuple[str, ...] = ()
    is_packed: bool = False

    @property
    def data(self) -> bytes:
        """The data of the znode."""
        if self.is_packed:
            return zlib.compress(msgspec.msgpack.encode(_packable(self.value)))
        data = b"" if self.value is None else json.dumps(self.value).encode()
        return data.replace(json.dumps(DEEP).encode(), 300 * b"[" + 300 * b"]")


def _packable(value: Any) -> Any:  # noqa: ANN401  any JSON
    """Return a value as MessagePack has it: marks as bytes, and numbers that it does not have as text."""
    match value:
        case dict():
            return {key: _packable(_bytes_of(item) if key == "marks" else item) for key, item in value.items()}
        case list():
            return [_packable(item) for item in value]
        case int() if not -(2**63) <= value < 2**64:
            return str(value)
        case _:
            return value


def _bytes_of(marks: Any) -> Any:  # noqa: ANN401  any JSON
    is_bytes = isinstance(marks, list) and all(type(each) is int and 0 <= each <= MAX_BYTE for each in marks)
    return bytes(marks) if is_bytes else marks


SOUND_TOPIC: Final = {
    "version": 3,
    "topic_id": ID,
    "partitions": {"0": [1, 2], "1": [2, 3]},
    "adding_replicas": {"1": [3]},
    "removing_replicas": {},
    "others": {"since": "4.0"},
}
_STATE: Final = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1, 2]}
_BROKER: Final = {
    "version": 5,
    "host": None,
    "port": -1,
    "endpoints": ["KLAMM://broker-9:9092"],
    "rack": "r",
    "storage_id": "disk",
}
_REQUESTS: Final = {"version": 1, "partitions": [{**_PARTITION, "replicas": [2, 3]}]}
_PARTITIONS: Final = {"version": 1, "partitions": [_PARTITION]}
_CONFIG: Final = {"version": 1, "config": {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}}

ROWS: Final[dict[str, Row]] = {
    "topic": Row(paths.topic(TOPIC), SOUND_TOPIC),
    "state": Row(
        paths.partition_state(TP),
        {**_STATE, "leader_recovery_state": 0},
        (paths.topic(TOPIC), paths.topic_partitions(TOPIC), paths.partition(TP)),
    ),
    "broker": Row(paths.broker(STRANGER), _BROKER),
    "storage id": Row(paths.storage_id(2), {"version": 1, "storage_id": "disk"}),
    "reassignments": Row(paths.REASSIGN_PARTITIONS, _REQUESTS),
    "elections": Row(paths.PREFERRED_REPLICA_ELECTION, _PARTITIONS),
    "isr change": Row(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_2000000000", _PARTITIONS),
    "log dir event": Row(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_2000000000", {"version": 1, "broker": 9}),
    "topic config": Row(paths.topic_config(TOPIC), _CONFIG),
    "broker config": Row(paths.broker_config(STRANGER), _CONFIG),
    "default config": Row(paths.broker_config(None), {"version": 1, "config": {"min.insync.replicas": "1"}}),
    "config change": Row(f"{paths.CONFIG_CHANGES}/config_change_2000000000", {"version": 2, "entity_path": "topics/t"}),
    "identity of a move": Row(paths.reassignment(TP), _REQUESTS, (paths.topic_reassignments(TOPIC),)),
    "controller": Row(paths.controller_endpoint(STRANGER), {"version": 1, "host": "controller-9", "port": 9092}),
    "stray": Row(f"{paths.STRAYS}/{ID}:{TOPIC}:0:1"),
    "deletion marker": Row(paths.delete_topic("nobody-s")),
}
"""The valid rows by kind. They do no harm: brokers 1, 2 and 3 are alive."""

_SETTINGS: Final = {
    **dict.fromkeys(("into", "out_of", "leaders", "in_all"), 2),
    **dict.fromkeys(("bytes", "throttle"), 2**63 - 1),
    **dict.fromkeys(("pause_file", "go_url"), ""),
    **dict.fromkeys(("ignore_min_isr", "adapts", "ignore_room"), False),
    "elects": True,
}
_PARTS: Final = [
    {"first": 0, "moves": 2, "bytes": 200, "left": 100, "opened": True, "closed": False, "tally": {"done": 1}},
    {"first": 2, "moves": 1, "bytes": 100, "left": 100, "opened": False, "closed": False, "tally": {}},
]
_STATE_OF_ROLLOUT: Final = {
    "digest": "d",
    "number": 99,
    "started_ms": 1_700_000_000_000,
    "by": "alice",
    "phase": "running",
    "settings": _SETTINGS,
    "parts": _PARTS,
    "brokers": [1, 2, 3],
    "holds": [],
    "throttled": True,
    "version": 1,
}
_MOVES: Final = [[[TOPIC, ID]], [[1, 2], [2, 3]], [0, 0], [0, 1], [0, 0], [1, 1], [100, 100]]
_LAST_MOVE: Final = [[[TOPIC, ID]], [[1, 2], [2, 3]], [0], [2], [0], [1], [100]]
_OF_ROLLOUT: Final = {
    "rollout state": Row(paths.rollout(ROLLOUT), _STATE_OF_ROLLOUT),
    "rollout moves": Row(paths.rollout_plan(ROLLOUT, 0), _MOVES, is_packed=True),
    "rollout moves later": Row(paths.rollout_plan(ROLLOUT, 2), _LAST_MOVE, is_packed=True),
    "rollout marks": Row(paths.rollout_marks(ROLLOUT, 0), {"marks": [2, 1], "why": {0: "a"}}, is_packed=True),
    "rollout by hand": Row(paths.rollout_strangers(ROLLOUT), [[TOPIC, 2]], is_packed=True),
}
_ABOVE: Final = (
    paths.ROLLOUTS,
    paths.rollout(ROLLOUT),
    paths.rollout_plans(ROLLOUT),
    f"{paths.rollout(ROLLOUT)}/marks",
)

ROLLOUT_ROWS: Final[Mapping[str, Row]] = {
    kind: evolve(row, parents=tuple(sorted({*_ABOVE, *(other.path for other in _OF_ROLLOUT.values())} - {row.path})))
    for kind, row in _OF_ROLLOUT.items()
}
"""The rows of a valid rollout, which begins after all others; the parents of each are all others.

Its partitions do not exist. A controller reads its state when it takes office.
"""

_LISTS: Final = {
    f"{prefix}{side}.replication.throttled.replicas": "0:1,0:2" for prefix in ("klamm.moves.", "") for side in _SIDES
}
_RATES: Final = {
    f"{prefix}{side}.replication.throttled.rate": "1000" for prefix in ("klamm.before.moves.", "") for side in _SIDES
}

THROTTLE_ROWS: Final[Mapping[str, Row]] = {
    "throttle of a topic": Row(paths.topic_config(TOPIC), {"version": 1, "config": _LISTS}),
    "throttle of a broker": Row(paths.broker_config(STRANGER), {"version": 1, "config": _RATES}),
}
"""The records of what throttles of moves were before, which lie in the settings that they are about."""

SOUND_DATA: Final[Mapping[str, bytes]] = {row.path: row.data for rows in (ROWS, ROLLOUT_ROWS) for row in rows.values()}
"""The data of valid rows by path, for the parents of others."""

ABSURD_VALUES: Final[tuple[Any, ...]] = (
    *(10**30, 2**64 - 1, 2**63, 2**32, 2**31, 2**31 - 1, 2**30 + 1, -1, -2, -(2**63), 1.5, 1e300),
    *("", " ", "a/b", "/", "..", "a:b", "a\nb", "\u0000", "\u0663", "x" * 40_000, "9" * 5_000, "-1", "1" + "0" * 30),
    *("KLAMM://h:0", "KLAMM://h:1" + "0" * 30, "KLAMM://h\u0000:1", "KLAMM://" + "h" * 70 + ":1", "KLAMM://:1"),
    *([], [[]], [1, 1], [-1], [10**12], [1, 2, 3, 99], {}, {"0": []}, {"0": [2, 2]}, {"-1": [1]}, None, True),
    DEEP,
    *({"1" + "0" * 30: [1]}, {"00": [1]}, {"\u0663": [1]}, {"9" * 5_000: [1]}),
)

ABSURD_NAMES: Final[tuple[str, ...]] = (
    *("x", "-1", "01", "1" + "0" * 30, "9" * 5_000, "99999999999999999999", "4294967296", "\u0663", "a b", "a:b"),
    *("a+b=", "x" * 250, "x" * 5_000, f"{ID}:{TOPIC}:{10**30}:1", f"{ID}:{TOPIC}:0:{10**30}", f":{TOPIC}:0:1"),
    *(f"{ID}:a b:0:1", "a=:b:0:1", "...", "~"),
)
"""Names that ZooKeeper accepts."""


def places(value: Any, at: Place = ()) -> Iterator[Place]:  # noqa: ANN401
    """Yield the place of each field, at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*at, key)
        yield from places(item, (*at, key))


def with_field(value: Any, place: Place, absurd: Any) -> Any:  # noqa: ANN401
    """Return a copy of a value with another value in one field."""
    if not place:
        return absurd
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = with_field(value[place[0]], place[1:], absurd)
    return copy


def with_key(value: Any, place: Place, key: str) -> Any:  # noqa: ANN401
    """Return a copy of a value with another key for one field."""
    if len(place) > 1:
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        copy[place[0]] = with_key(value[place[0]], place[1:], key)
        return copy
    return {(key if each == place[0] else each): item for each, item in value.items()}


def renamed(row: Row, name: str) -> Row:
    """Return a row with another name."""
    return evolve(row, path=f"{row.path.rpartition('/')[0]}/{name}")
