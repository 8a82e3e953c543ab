"""The releases of Kafka's brokers, and what a controller has to know of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import frozen

from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.kafka.schema import Versions

PROTOCOL: Final = "inter.broker.protocol.version"
"""The setting of brokers that says which of their releases' features they use among themselves."""

_ALTER_PARTITION: Final = 56
_ALLOCATE_PRODUCER_IDS: Final = 67
_PROTOCOL: Final = re.compile(r"(?P<major>[0-9]{1,4})\.(?P<minor>[0-9]{1,4})(\.[0-9.]*)?(-IV(?P<change>[0-9]{1,4}))?")
_LAST_CHANGE: Final = 10_000


class Protocol(NamedTuple):
    """A value of inter.broker.protocol.version: a release, and the number of a change within it."""

    major: int
    minor: int
    change: int = _LAST_CHANGE


WITHOUT_STORED_ISRS: Final = Protocol(2, 7, 2)
"""The first one with which leaders ask the controller for an ISR, instead of writing it to the store."""

WITH_TOPIC_IDS: Final = Protocol(2, 8, 1)
"""The first one with which brokers are told the ids of topics."""


def parse_protocol(text: str) -> Protocol | None:
    """Return the protocol in a setting such as `2.8` or `2.7-IV1`; None if it has not this form."""
    found = _PROTOCOL.fullmatch(text.strip())
    if found is None:
        return None
    release = int(found["major"]), int(found["minor"])
    return Protocol(*release) if found["change"] is None else Protocol(*release, int(found["change"]))


PARTITIONS: Final = "num.partitions"
REPLICATION_FACTOR: Final = "default.replication.factor"
REMOTE_STORAGE: Final = "remote.log.storage.system.enable"


@frozen
class TopicDefaults:
    """The settings of a broker that count where who creates a topic leaves a choice; without them, Kafka's own."""

    partitions: int = 1
    replication_factor: int = 1
    has_remote_storage: bool = False
    """Whether it keeps a part of logs in tiered storage."""


OF_CONTROLLERS: Final = (
    "auto.leader.rebalance.enable",
    "delete.topic.enable",
    "leader.imbalance.check.interval.seconds",
    "leader.imbalance.per.broker.percentage",
    "unclean.leader.election.enable",
)
"""The settings that Kafka's controller takes from the file of its own broker, and ours from its own."""

OF_THE_START: Final = (MIN_INSYNC_REPLICAS, *OF_CONTROLLERS)
"""The settings of which the value in a broker's file is wanted, or else Kafka's default.

What is set at run time for all brokers is in the store.
"""

ASKED: Final = (PROTOCOL, PARTITIONS, REPLICATION_FACTOR, REMOTE_STORAGE, *OF_THE_START)
"""The settings that a broker is asked for."""


@frozen
class Release:
    """What a connection to a broker has shown of its release and its settings."""

    needs_registration: bool
    """Whether it looks for the controller in `/brokers/ids` before it shuts down, as up to 2.8."""

    needs_epochs: bool = False
    """Whether a leader on it needs a higher epoch after a change of its ISR, as from 2.7 to 3.1."""

    protocol: Protocol | None = None
    """The protocol of its cluster; None if it does not say."""

    topic_defaults: TopicDefaults | None = None
    """None if it does not say."""

    min_isr: int | None = None
    """Its min.insync.replicas, which topics inherit; None if it does not say."""

    of_controllers: tuple[tuple[str, str], ...] = ()
    """The settings that its own controller would have, and their values, as far as it says them."""


def release_of(offered: Mapping[int, Versions], settings: Mapping[str, str]) -> Release:
    """Return the release of a broker that offers these versions, by the keys of apis, and says these settings."""
    proposals, min_isr = offered.get(_ALTER_PARTITION), settings.get(MIN_INSYNC_REPLICAS, "")
    return Release(
        needs_registration=_ALLOCATE_PRODUCER_IDS not in offered,
        needs_epochs=proposals is not None and proposals.last == 0,
        protocol=parse_protocol(settings.get(PROTOCOL, "")),
        topic_defaults=_topic_defaults(settings),
        min_isr=int(min_isr) if min_isr.isdecimal() else None,
        of_controllers=tuple((name, settings[name]) for name in OF_CONTROLLERS if name in settings),
    )


def _topic_defaults(settings: Mapping[str, str]) -> TopicDefaults | None:
    partitions, factor = settings.get(PARTITIONS, ""), settings.get(REPLICATION_FACTOR, "")
    if not partitions.isdecimal() or not factor.isdecimal():
        return None
    return TopicDefaults(int(partitions), int(factor), settings.get(REMOTE_STORAGE) == "true")
