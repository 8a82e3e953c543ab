"""A rollout as `status` and `list` show it, whoever carries it out: in rows, in a line, and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import field, frozen

from controller.rollout.states import HeldBy, MoveState, Phase, RolloutState
from klamm.cli.formats import Table, time_of
from klamm.cli.rollout.documents import OddMove, ProgressRow, RolloutRow
from klamm.cli.rollout.showing import Progress
from klamm.cli.units import duration, moment, rate, size
from transport.messages import UNKNOWN

UNUSABLE: Final = "unusable"
"""The state of a rollout that the controller has quarantined."""


@frozen
class Odd:
    """A partition that is not as planned."""

    partition: str
    move: MoveState
    because: str


@frozen
class Report:
    """The state of a rollout. `progress` is the last one that was noted, as the journal has it."""

    name: str
    state: RolloutState
    brake: str
    started_ms: int
    carried_out_by: str | None
    counts: Mapping[MoveState, int]
    progress: Mapping[str, Any]
    odd: tuple[Odd, ...] = ()
    more: tuple[tuple[str, str], ...] = ()
    """Other rows."""

    others: Mapping[str, Any] = field(factory=dict)
    """The entries of the document that only a controller has."""

    fault: str = ""
    """Why the controller has quarantined it; nothing else is known of it then."""

    @property
    def total(self) -> int:
        """The moves of the plan."""
        return sum(self.counts.values())

    @property
    def rows(self) -> Iterator[tuple[str, str]]:
        """All that is known of it, by name."""
        if self.fault:
            yield from (("state", UNUSABLE), ("because", self.fault), ("remedy", self.remedy))
            return
        yield "state", str(self.state)
        if self.because:
            yield "because", self.because
        yield "started", moment(self.started_ms)
        if not self.state.is_over:
            yield "carried out by", self.carried_out_by or "no process: `klamm rollout run` goes on"
        yield from self.more
        yield "moves", counts_in_words(self.counts)
        if self.progress and not self.state.is_over:
            yield from self._progress_rows()

    def _progress_rows(self) -> Iterator[tuple[str, str]]:
        progress = self.progress
        yield "bytes left", size(progress["bytes_left"])
        if progress["bytes_per_second"] is not None:
            yield "rate", rate(progress["bytes_per_second"])
        if progress["seconds_left"] is not None:
            within = "" if progress["error"] is None else f", so far within {progress['error']:.0%}"
            yield "time left", duration(progress["seconds_left"] * 1000) + within
        for text, count in progress["waits"].items():
            yield f"{count:,} wait{'s' if count == 1 else ''}", text
        yield "as of", moment(progress.get("at", UNKNOWN))

    @property
    def because(self) -> str:
        """The reason of a brake that holds it; the state itself names an operator."""
        return self.brake if self.state.is_paused and HeldBy.BRAKE in self.state.holds else ""

    @property
    def remedy(self) -> str:
        """The remedy for its fault."""
        return f"`klamm rollout remove {self.name}` removes it; if its row is repaired, the next controller goes on"

    @property
    def settings(self) -> str:
        """Its limits and throttle, in a line."""
        return ", ".join(f"{name} {value}" for name, value in self.more if name in {"at once", "throttle"})

    @property
    def line(self) -> str:
        """Its progress, in a line."""
        if self.fault:
            return f"{UNUSABLE}: {self.fault}"
        if self.state.is_over or not self.progress:
            return f"{self.state}: {counts_in_words(self.counts)}"
        told = self.progress
        left, speed, error = told["seconds_left"], told["bytes_per_second"], told["error"]
        shown = Progress(str(self.state), *self._ended, told["in_flight"], told["bytes_left"], speed, left, error)
        because = f", {self.because}" if self.because else ""
        return f"{self.state}{because}: {shown.line}"

    @property
    def _ended(self) -> tuple[int, int]:
        """The moves that have ended, and all, in the direction of now."""
        done, back = self.counts[MoveState.DONE], self.counts[MoveState.BACK]
        if self.state.phase is not Phase.UNDOING:
            return done, self.total
        return back, done + back + self.counts[MoveState.GOING_BACK]

    @property
    def document(self) -> RolloutRow:
        """All that is known of it, for programs."""
        others = self.others
        return RolloutRow(
            self.name,
            UNUSABLE if self.fault else self.state.phase.value,
            self.fault or None,
            sorted(hold.value for hold in self.state.holds),
            self.because or None,
            None if self.fault else time_of(self.started_ms),
            self.carried_out_by,
            others.get("queued_behind"),
            others.get("started_by"),
            others.get("settings"),
            {state.value: count for state, count in self.counts.items()},
            ProgressRow.of(self.progress) if self.progress and not self.fault else None,
            [OddMove(one.partition, one.move.value, one.because) for one in self.odd],
        )

    @property
    def parts(self) -> list[Table | str]:
        """All that is known of it, as tables."""
        tables: list[Table | str] = [Table(("rollout", self.name), list(self.rows))]
        if self.odd:
            odd = [(one.partition, one.move.value, one.because) for one in self.odd]
            tables += ["", Table(("partition", "move", "because"), odd)]
        return tables


def counts_in_words(counts: Mapping[MoveState, int]) -> str:
    """Return how many moves are in each state that there is."""
    return ", ".join(f"{count:,} {state.value}" for state, count in counts.items() if count)
