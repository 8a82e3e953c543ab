"""The outcome of a scenario: its events, the expectations that did not hold, and the final state."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from controller.admin.move_rows import Stage, stage_of
from simulator.steps import ControllerStep, Moment
from simulator.trace import Trace
from transport.messages import PartitionState
from transport.metadata import TopicPartition


@frozen
class PlayedEvent:
    """An event of the scenario, with its time."""

    time: float
    text: str


@frozen
class CommitRow:
    """A partition after a controller's commit."""

    time: float
    controller_id: int
    round: str
    state: PartitionState


@frozen
class Miss:
    """An expectation that did not hold, with its line in the file and the actual state."""

    line: int
    text: str


@define
class Chronicle:
    """Collects events while a scenario runs. Times are seconds since its beginning."""

    entries: list[PlayedEvent | CommitRow] = field(factory=list)
    rounds: list[tuple[TopicPartition, str]] = field(factory=list)
    """Each round of a partition that was committed, or published without anything to commit."""

    states: list[PartitionState] = field(factory=list)
    """Each state of a partition that a controller committed."""

    decided: dict[tuple[TopicPartition, str], None] = field(factory=dict)
    misses: list[Miss] = field(factory=list)
    expectations: int = 0
    """Number of expectations so far."""

    _last: dict[TopicPartition, CommitRow] = field(factory=dict)
    _committed: set[tuple[TopicPartition, str]] = field(factory=set)

    def saw(self, now: float, step: ControllerStep) -> None:
        """Record a step."""
        named = [(tp, step.round) for tp in step.subjects]
        if step.moment is Moment.DECIDED:
            self.decided |= dict.fromkeys(named)
        elif step.moment is Moment.COMMITTED:
            self.rounds += named
            self.states += step.partitions
            self._committed |= set(named)
            for state in step.partitions:
                self._show(CommitRow(now, step.controller_id, step.round, state))
        else:
            self.rounds += [item for item in named if item not in self._committed]
            self._committed -= set(named)

    def _show(self, row: CommitRow) -> None:
        """Add a row, unless it repeats the last one or shows an ISR that grows towards the target."""
        tp = row.state.tp
        last = self._last.get(tp)
        if last is None or (_shown(last.state) != _shown(row.state) and not _only_grows(last, row)):
            self._last[tp] = row
            self.entries.append(row)

    def rows(self) -> list[CommitRow]:
        """Return only the rows."""
        return [entry for entry in self.entries if isinstance(entry, CommitRow)]


def _shown(state: PartitionState) -> tuple[object, ...]:
    moving = (state.replicas, state.adding_replicas, state.removing_replicas)
    return (*moving, state.leader, frozenset(state.isr))


def _only_grows(last: CommitRow, row: CommitRow) -> bool:
    target = frozenset(row.state.replicas) - frozenset(row.state.removing_replicas)
    return (
        row.round == "ISR"
        and stage_of(row.state, target) is stage_of(last.state, target) is Stage.BRING_IN
        and row.state.replicas == last.state.replicas
        and set(row.state.isr) > set(last.state.isr)
    )


@frozen
class ScenarioOutcome:
    """The end of one run of a scenario."""

    path: str
    variant: Mapping[str, str]
    seed: int
    chronicle: Chronicle
    violation: str | None
    partitions: tuple[PartitionState, ...]
    controller: int | None
    acknowledged: int
    seconds: float
    """Virtual time from the beginning to the end."""

    trace: Trace

    @property
    def has_succeeded(self) -> bool:
        """Whether all expectations held, and no invariant was violated."""
        return self.violation is None and not self.chronicle.misses
