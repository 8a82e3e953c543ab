"""The documents that `klamm simulate` prints for programs: scenarios, one random run, or many."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from klamm.cli.output import PartitionRow


class TraceEntry(Struct):
    """Something that happened; `time` is in virtual seconds."""

    time: float
    kind: str
    where: str
    what: Any


class Miss(Struct):
    """An expectation of a scenario that was not met, by its line."""

    line: int
    text: str


class CommittedRow(PartitionRow):
    """The state of a partition after a commit, its virtual time, and the controller and step that wrote it."""

    time: float
    controller: int
    step: str


class ScenarioRun(Struct):
    """A run of a scenario. `seconds` is virtual time; `violation` is null if every invariant held."""

    scenario: str
    variant: dict[str, str]
    seed: int
    succeeded: bool
    violation: str | None
    missed: list[Miss]
    expectations: int
    seconds: float
    acknowledged: int
    controller: int | None
    partitions: list[PartitionRow]
    rows: list[CommittedRow]
    trace_digest: str
    trace: list[TraceEntry]


class ScenarioRuns(Struct):
    """The runs of the scenarios of a file."""

    runs: list[ScenarioRun]


class Violation(Struct):
    """An invariant that did not hold."""

    invariant: str
    text: str


class RunSummary(Struct):
    """A random run; `last` has its last events."""

    seed: int
    digest: str
    violation: Violation | None
    last: list[str]
    counts: dict[str, int]


class RandomRun(RunSummary):
    """A random run with its plan and its whole trace."""

    plan: list[str]
    trace: list[TraceEntry]


class RandomRuns(Struct):
    """Random runs together, with those that failed."""

    runs: int
    different_runs: int
    failed: int
    failures: list[RunSummary]
    counts: dict[str, int]
    needed_per_1000_seeds: dict[str, int]
