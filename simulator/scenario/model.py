"""A scenario, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from attrs import field, frozen

from simulator.actions.requests import CreateTopic
from simulator.actions.scene import Action
from simulator.settings import Settings

PATIENCE: Final = 120.0
"""How long an event waits for its step, and in the end everything for being mended, unless a scenario says else."""

OUTCOMES: Final = ("UNREACHABLE", "GAVE_UP")
"""What an action may come to beside the errors of the protocol: no controller was found, no leader took a record."""


@frozen
class LoadPlan:
    """How many records per second are written to which partitions in turn; to all if none is named."""

    per_second: float
    partitions: tuple[str, ...] = ()


class Reach(Enum):
    """What a controller does with a round that an event waits for."""

    DECIDES = "decides"
    REACHES = "reaches"
    PUBLISHES = "publishes"


@frozen
class When:
    """The moment of a step: a controller that decides, reaches (has in force) or publishes a round."""

    partition: str | None
    """None is a round that is about anything."""

    reach: Reach
    round: str


@frozen
class Trigger:
    """When an event comes: at a time of the run, at a step, or some time after the event before it."""

    at: float | None = None
    when: When | None = None
    after: float = 0.0


@frozen
class PartitionExpectation:
    """What a partition is to be like, durably; None is whatever it is. The order of an ISR says nothing."""

    replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    leader: tuple[int, ...] | None = None
    """Any of them."""

    isr: tuple[int, ...] | None = None
    leader_epoch: int | None = None
    controller_epoch: int | None = None


@frozen
class Expectations:
    """What is to hold."""

    partitions: Mapping[str, PartitionExpectation] = field(factory=dict)
    reaches: Mapping[str, tuple[str, ...]] = field(factory=dict)
    """Rounds that each partition went through, in this order, with others in between or not."""

    skips: Mapping[str, tuple[str, ...]] = field(factory=dict)
    """Rounds that no controller decided for a partition."""

    disks: Mapping[int, tuple[str, ...]] = field(factory=dict)
    """The replicas that a broker's disk holds, and no others."""

    passes: Mapping[str, tuple[PartitionExpectation, ...]] = field(factory=dict)
    """States that each partition went through, in this order, with others in between or not."""

    never: Mapping[str, PartitionExpectation] = field(factory=dict)
    """States that no controller committed for a partition."""

    records: Mapping[str, int] = field(factory=dict)
    """How many records the leader of each partition holds."""

    unclean: int | None = None
    """How many unclean elections there were."""

    controller: tuple[int, ...] | None = None
    """Any of these is active."""

    refused: str | None = None
    """The error with which the event's action is refused."""


@frozen
class Event:
    """Something that happens, and what is expected of it within a time after it was done."""

    line: int
    text: str
    trigger: Trigger
    action: Action | None
    expect: Expectations
    within: float = 0.0
    stays: float = 0.0
    """How long what is expected must hold after that, in seconds."""


@frozen
class Scenario:
    """One scenario; of a file with a matrix, one of its variants."""

    path: str
    variant: Mapping[str, str]
    settings: Settings
    topics: tuple[CreateTopic, ...]
    topics_line: int
    load: LoadPlan | None
    events: tuple[Event, ...]
    expect: Expectations
    expect_line: int
    settles: float = PATIENCE
