"""The measured rounds of events and of their floors, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import Final

from attrs import define, field

from benchmarks.kit import figures
from benchmarks.kit.controllership import Outcome
from benchmarks.kit.samples import say
from benchmarks.kit.times import Times

TITLES: Final = (
    "event",
    "rounds",
    *("floor, s", "controller, s", "ratio"),
    *("floor, processor, s", "controller, processor, s", "ratio"),
    "at rest after, s",
)


@define
class Row:
    """The rounds of one event. The n-th floor was measured next to the n-th event."""

    title: str
    floors: list[Times] = field(factory=list, init=False)
    outcomes: list[Outcome] = field(factory=list, init=False)

    def add_floor(self, floor: Times) -> None:
        """Add a round of the floor."""
        self.floors.append(floor)
        say(f"{self.title}: floor {floor.wall:.2f} s, processor {floor.processor:.2f} s")

    def add(self, outcome: Outcome) -> None:
        """Add a round of the event."""
        self.outcomes.append(outcome)
        took = f"{outcome.times.wall:.2f} s, processor {outcome.times.processor:.2f} s, at rest {outcome.rest:.2f} s"
        say(f"{self.title}: {took} after; {outcome.taken}")

    @property
    def processor(self) -> float:
        """The median of the processor time of the event."""
        return median(outcome.times.processor for outcome in self.outcomes)

    def line(self) -> str:
        """Return the row of the table: medians of the times, and of the ratios of all rounds."""
        cells = [self.title, str(len(self.outcomes)), *self._compared(_wall), *self._compared(_processor)]
        return _line([*cells, f"{median(outcome.rest for outcome in self.outcomes):.2f}"])

    def _compared(self, part: Callable[[Times], float]) -> list[str]:
        floors = [part(floor) for floor in self.floors]
        events = [part(outcome.times) for outcome in self.outcomes]
        ratio = median(event / floor for floor, event in zip(floors, events, strict=True))
        return [f"{median(floors):.2f}", f"{median(events):.2f}", f"{ratio:.2f}x"]


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of the table, and note the figures of its rows."""
    yield _line(TITLES)
    yield _line(["---", *["---:"] * (len(TITLES) - 1)])
    for row in rows:
        figures.note(row.title, "s", median(outcome.times.wall for outcome in row.outcomes))
        figures.note(row.title, "processor, s", row.processor)
        yield row.line()


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _wall(times: Times) -> float:
    return times.wall


def _processor(times: Times) -> float:
    return times.processor
