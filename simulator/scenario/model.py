"""A scenario, read and checked; the fields of its parts declare the keys of the language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from simulator.actions.requests import CreateTopic
from simulator.actions.scene import Action
from simulator.scenario.nouns import BROKER_ID, BROKERS, PARTITION, PARTITIONS, ROUNDS, When
from simulator.scenario.shapes import choice, integer, key, keys_of, list_of, map_of, number, record
from simulator.settings import Settings
from transport.errors import ErrorCode

PATIENCE: Final = 120.0
"""Default seconds that an event waits for its step, and that the cluster may take to settle at the end."""

OUTCOMES: Final = ("UNREACHABLE", "GAVE_UP")
"""Outcomes of an action besides the protocol's errors: no controller was found, no leader accepted a record."""


_CODES: Final = tuple(code.name for code in ErrorCode if code is not ErrorCode.NONE)
ANY_OF: Final = list_of(integer("a node's id", -2), or_one=True)
EPOCH: Final = integer("an epoch")
RATE: Final = number("records per second", 0.001)
ROUND_LIST: Final = list_of(choice(ROUNDS), or_one=True)


@frozen
class LoadPlan:
    """Records that are written to partitions in turn."""

    per_second: float = key(RATE, "Records per second in total.")
    partitions: tuple[str, ...] = key(
        PARTITIONS, "The partitions that they are written to, in turn; by default all.", default=()
    )


@frozen
class Trigger:
    """The trigger of an event: a time of the run, or a delay after the previous event; or a step.

    A step is the first one from a time on, if there is one; the event happens a delay after it.
    """

    at: float | None = None
    when: When | None = None
    after: float = 0.0


@frozen
class PartitionExpectation:
    """The expected durable state of a partition; None matches anything."""

    replicas: tuple[int, ...] | None = key(BROKERS, "RS, in order.", default=None)
    adding_replicas: tuple[int, ...] | None = key(BROKERS, "AR, in order.", default=None)
    removing_replicas: tuple[int, ...] | None = key(BROKERS, "RR, in order.", default=None)
    leader: tuple[int, ...] | None = key(ANY_OF, "The leader, or a list that contains it; -1 is none.", default=None)
    isr: tuple[int, ...] | None = key(BROKERS, "The in-sync replicas, in any order.", default=None)
    leader_epoch: int | None = key(EPOCH, "The leader epoch, which begins with 0.", default=None)
    controller_epoch: int | None = key(EPOCH, "The epoch of the controller that wrote the state.", default=None)


STATE: Final = record(PartitionExpectation, keys_of(PartitionExpectation))


@frozen
class Expectations:
    """The expectations of an event, or of the end of a scenario."""

    partitions: Mapping[str, PartitionExpectation] = field(factory=dict)
    reaches: Mapping[str, tuple[str, ...]] = key(
        map_of(PARTITION, ROUND_LIST),
        "Rounds that a partition went through in this order, perhaps among others.",
        factory=dict,
    )
    skips: Mapping[str, tuple[str, ...]] = key(
        map_of(PARTITION, ROUND_LIST), "Rounds that no controller decided for a partition.", factory=dict
    )
    disks: Mapping[int, tuple[str, ...]] = key(
        map_of(BROKER_ID, list_of(PARTITION)), "The replicas on a broker's disk, and no others.", factory=dict
    )
    passes: Mapping[str, tuple[PartitionExpectation, ...]] = key(
        map_of(PARTITION, list_of(STATE)),
        "States that a partition went through in this order, perhaps among others.",
        factory=dict,
    )
    never: Mapping[str, PartitionExpectation] = key(
        map_of(PARTITION, STATE), "States that no controller committed for a partition.", factory=dict
    )
    records: Mapping[str, int] = key(
        map_of(PARTITION, integer("a number of records")),
        "The number of records that a partition's leader holds.",
        factory=dict,
    )
    unclean: int | None = key(integer("a number of elections"), "The number of unclean elections.", default=None)
    controller: tuple[int, ...] | None = key(ANY_OF, "The active controller, or a list that contains it.", default=None)
    refused: str | None = key(choice((*_CODES, *OUTCOMES)), "The error with which the action is refused.", default=None)


@frozen
class ScenarioEvent:
    """An action, and the expectations that must hold within a time after it."""

    line: int
    text: str
    trigger: Trigger
    action: Action | None
    expect: Expectations
    within: float = 0.0
    stays: float = 0.0
    """Seconds for which the expectations must continue to hold after that."""

    waits_for: Expectations | None = None
    """Conditions to wait for, up to `within`, before the expectations are compared."""


@frozen
class Scenario:
    """A scenario, or one variant of a scenario with a matrix."""

    path: str
    variant: Mapping[str, str]
    settings: Settings
    topics: tuple[CreateTopic, ...]
    topics_line: int
    load: LoadPlan | None
    events: tuple[ScenarioEvent, ...]
    expect: Expectations
    expect_line: int
    settles: float = PATIENCE
    records: int = 0
    seed: int | None = None
    in_order: bool = True
    lasts: float | None = None
