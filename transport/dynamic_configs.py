"""The settings of topics and brokers that change at run time, and which of several values is in effect.

They are stored below `/config` in Kafka's format: a topic's own, a broker's own, and the default of all brokers. A
topic inherits from its broker, under the broker's name of the setting; a broker inherits from the default of all
brokers, and that from the settings that the process was started with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from transport.settings import LONG_MAX, InvalidSetting, Kind, Setting, Value

UNCLEAN_LEADER_ELECTION_ENABLE: Final = "unclean.leader.election.enable"
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
MAX_MESSAGE_BYTES: Final = "max.message.bytes"
MESSAGE_MAX_BYTES: Final = "message.max.bytes"
LEADER_THROTTLED_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_THROTTLED_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_THROTTLED_RATE: Final = "follower.replication.throttled.rate"

LARGEST_MESSAGE: Final = 16 * 1024 * 1024
"""The largest record in bytes, so that a fetch response has room for it."""

_UNCLEAN_DOC: Final = "Whether a replica outside the ISR may lead when no member of the ISR can, which loses records."
_MIN_ISR_DOC: Final = "The minimum size of the ISR for acks=all."
_SIZE_DOC: Final = "The largest size of a record in bytes."
_REPLICAS_DOC: Final = "The replicas that the throttle of {} applies to."
_RATE_DOC: Final = "The bytes per second that the throttled replicas of this broker may {}."


def _table(settings: Iterable[Setting]) -> Mapping[str, Setting]:
    return {setting.name: setting for setting in settings}


_UNCLEAN = Setting(UNCLEAN_LEADER_ELECTION_ENABLE, Kind.BOOLEAN, default=False, doc=_UNCLEAN_DOC)
_MIN_ISR = Setting(MIN_INSYNC_REPLICAS, Kind.INT, 1, _MIN_ISR_DOC, at_least=1)

TOPIC_SETTINGS: Final = _table(
    [
        _UNCLEAN,
        _MIN_ISR,
        Setting(MAX_MESSAGE_BYTES, Kind.INT, 1024 * 1024, _SIZE_DOC, at_most=LARGEST_MESSAGE),
        Setting(LEADER_THROTTLED_REPLICAS, Kind.REPLICAS, "", _REPLICAS_DOC.format("leaders")),
        Setting(FOLLOWER_THROTTLED_REPLICAS, Kind.REPLICAS, "", _REPLICAS_DOC.format("followers")),
    ]
)
"""The settings that a topic can have."""

BROKER_SETTINGS: Final = _table(
    [
        _UNCLEAN,
        _MIN_ISR,
        Setting(MESSAGE_MAX_BYTES, Kind.INT, 1024 * 1024, _SIZE_DOC, at_most=LARGEST_MESSAGE),
        Setting(LEADER_THROTTLED_RATE, Kind.LONG, LONG_MAX, _RATE_DOC.format("send"), at_most=LONG_MAX),
        Setting(FOLLOWER_THROTTLED_RATE, Kind.LONG, LONG_MAX, _RATE_DOC.format("fetch"), at_most=LONG_MAX),
    ]
)
"""The settings that a broker, or the default of all brokers, can have."""

_MOVE_REPLICAS_DOC: Final = "The throttled replicas that `klamm reassignment execute` added for its moves."
_MOVE_RATE_DOC: Final = "The rate that `klamm reassignment execute` replaced for its moves; -1 if there was none."

LEADER_REPLICAS_OF_MOVES: Final = f"klamm.moves.{LEADER_THROTTLED_REPLICAS}"
FOLLOWER_REPLICAS_OF_MOVES: Final = f"klamm.moves.{FOLLOWER_THROTTLED_REPLICAS}"
LEADER_RATE_BEFORE_MOVES: Final = f"klamm.before.moves.{LEADER_THROTTLED_RATE}"
FOLLOWER_RATE_BEFORE_MOVES: Final = f"klamm.before.moves.{FOLLOWER_THROTTLED_RATE}"

MOVE_SETTINGS: Final = _table(
    [
        Setting(LEADER_REPLICAS_OF_MOVES, Kind.REPLICAS, "", _MOVE_REPLICAS_DOC),
        Setting(FOLLOWER_REPLICAS_OF_MOVES, Kind.REPLICAS, "", _MOVE_REPLICAS_DOC),
        Setting(LEADER_RATE_BEFORE_MOVES, Kind.LONG, -1, _MOVE_RATE_DOC, at_least=-1, at_most=LONG_MAX),
        Setting(FOLLOWER_RATE_BEFORE_MOVES, Kind.LONG, -1, _MOVE_RATE_DOC, at_least=-1, at_most=LONG_MAX),
    ]
)
"""The settings that distinguish the throttles of moves, which end with the moves, from throttles set by others."""

DEFAULT_ONLY: Final = frozenset({UNCLEAN_LEADER_ELECTION_ENABLE})
"""The settings that a single broker cannot have, because the controller decides by them."""

BROKER_NAMES: Final = {
    UNCLEAN_LEADER_ELECTION_ENABLE: UNCLEAN_LEADER_ELECTION_ENABLE,
    MIN_INSYNC_REPLICAS: MIN_INSYNC_REPLICAS,
    MAX_MESSAGE_BYTES: MESSAGE_MAX_BYTES,
}
"""The broker's name of each setting that a topic inherits."""


@frozen
class Layer:
    """Settings of one source, as text; `source` is Kafka's name for it."""

    source: str
    settings: Mapping[str, str]


@frozen
class InEffect:
    """The value in effect of a setting, and its source. `faults` lists the invalid values of higher layers."""

    value: Value
    source: str
    faults: tuple[str, ...] = ()


DEFAULT_CONFIG: Final = "DEFAULT_CONFIG"


def in_effect(setting: Setting, layers: Sequence[Layer]) -> InEffect:
    """Return the first valid value of a setting in layers, highest first; without one, its default."""
    faults: list[str] = []
    for layer in layers:
        text = layer.settings.get(setting.name)
        if text is not None:
            try:
                return InEffect(setting.parse(text), layer.source, tuple(faults))
            except InvalidSetting as fault:
                # Somebody else wrote this value: report it, and use the next one.
                faults.append(str(fault))
    assert setting.default is not None, "every dynamic setting has a default"
    return InEffect(setting.default, DEFAULT_CONFIG, tuple(faults))


def as_topic_layer(layer: Layer) -> Layer:
    """Return the settings that topics inherit from a broker's layer, under the topics' names."""
    inherited = {ours: layer.settings[theirs] for ours, theirs in BROKER_NAMES.items() if theirs in layer.settings}
    return Layer(layer.source, inherited)


ALL_REPLICAS: Final = "*"


def parse_replicas(text: str) -> frozenset[tuple[int, int]] | None:
    """Return the replicas in a valid value of `*.replication.throttled.replicas`; None for all replicas of the topic.

    A replica is a pair of partition number and broker id.
    """
    if text == ALL_REPLICAS:
        return None
    pairs = (pair.split(":") for pair in text.split(",") if pair)
    return frozenset((int(partition), int(broker_id)) for partition, broker_id in pairs)


def render_replicas(replicas: Iterable[tuple[int, int]]) -> str:
    """Return the text that `parse_replicas` parses."""
    return ",".join(f"{partition}:{broker_id}" for partition, broker_id in sorted(replicas))
