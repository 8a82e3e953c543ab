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
"""Default seconds that an event waits for its step, and that the cluster may take to settle at the end."""

OUTCOMES: Final = ("UNREACHABLE", "GAVE_UP")
"""Outcomes of an action besides the protocol's errors: no controller was found, no leader accepted a record."""


@frozen
class LoadPlan:
    """Records per second that are written to partitions in turn; to all partitions if none is named."""

    per_second: float
    partitions: tuple[str, ...] = ()


class Reach(Enum):
    """The moments of a round for which an event can wait."""

    DECIDES = "decides"
    REACHES = "reaches"
    PUBLISHES = "publishes"


@frozen
class When:
    """The moment of a step: a controller decides, reaches (has put into effect) or publishes a round."""

    partition: str | None
    """None for a round of any subject."""

    reach: Reach
    round: str


@frozen
class Trigger:
    """The trigger of an event: a time of the run, a step, or a delay after the previous event."""

    at: float | None = None
    when: When | None = None
    after: float = 0.0


@frozen
class PartitionExpectation:
    """The expected durable state of a partition; None matches anything. The order of an ISR is ignored."""

    replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    leader: tuple[int, ...] | None = None
    """Any of these leaders matches."""

    isr: tuple[int, ...] | None = None
    leader_epoch: int | None = None
    controller_epoch: int | None = None


@frozen
class Expectations:
    """The expectations of an event, or of the end of a scenario."""

    partitions: Mapping[str, PartitionExpectation] = field(factory=dict)
    reaches: Mapping[str, tuple[str, ...]] = field(factory=dict)
    """Rounds that each partition went through, in this order, possibly with others in between."""

    skips: Mapping[str, tuple[str, ...]] = field(factory=dict)
    """Rounds that no controller decided for a partition."""

    disks: Mapping[int, tuple[str, ...]] = field(factory=dict)
    """The replicas that a broker's disk holds, and no others."""

    passes: Mapping[str, tuple[PartitionExpectation, ...]] = field(factory=dict)
    """States that each partition went through, in this order, possibly with others in between."""

    never: Mapping[str, PartitionExpectation] = field(factory=dict)
    """States that no controller committed for a partition."""

    records: Mapping[str, int] = field(factory=dict)
    """Number of records that the leader of each partition holds."""

    unclean: int | None = None
    """Number of unclean elections so far."""

    controller: tuple[int, ...] | None = None
    """One of these must be active."""

    refused: str | None = None
    """The error with which the event's action is refused."""


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
