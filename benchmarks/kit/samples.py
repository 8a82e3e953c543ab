"""The measured events of Klamm's controller and of Kafka's own, as a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Final

from attrs import define, field, frozen

KAFKA: Final = "Kafka"
KLAMM: Final = "Klamm"
NAMES: Final = (KAFKA, KLAMM)


@frozen
class Sample:
    """The seconds that an event took, and the processor time of the controller's process for it, if measured."""

    seconds: float
    processor: float | None = None


@define
class Samples:
    """All samples of a run, by event and side. The n-th ones of both sides are a pair."""

    _samples: dict[str, dict[str, list[Sample]]] = field(factory=dict, init=False)

    def add(self, event: str, side: str, sample: Sample, remark: object = "") -> None:
        """Add a sample, and tell it on standard error."""
        self._samples.setdefault(event, {name: [] for name in NAMES})[side].append(sample)
        processor = "" if sample.processor is None else f", processor {sample.processor:.2f} s"
        say(f"{side}: {event}: {sample.seconds:.3f} s{processor}", remark)

    def medians(self, side: str) -> dict[str, float]:
        """Return the median of the seconds of each event."""
        return {event: median(one.seconds for one in of[side]) for event, of in self._samples.items()}

    def table(self) -> Iterator[str]:
        """Yield the lines of a table with medians, and with the medians of the pairs' ratios."""
        has_processor = any(
            sample.processor is not None for of in self._samples.values() for one in of.values() for sample in one
        )
        titles = ["event", "pairs", *(f"{name}, s" for name in NAMES), "ratio (least to most)"]
        if has_processor:
            titles += [*(f"{name}, processor, s" for name in NAMES), "ratio"]
        yield table_line(titles)
        yield table_line(["---", *["---:"] * (len(titles) - 1)])
        for event, of in self._samples.items():
            theirs, ours = of[KAFKA], of[KLAMM]
            cells = [event, str(len(ours)), *_compared([one.seconds for one in theirs], [one.seconds for one in ours])]
            if has_processor:
                cells += _compared([one.processor or 0 for one in theirs], [one.processor or 0 for one in ours])[:2]
                cells.append(_ratio([one.processor or 0 for one in theirs], [one.processor or 0 for one in ours]))
            yield table_line(cells)


def _compared(theirs: list[float], ours: list[float]) -> list[str]:
    ratios = [our / their for their, our in zip(theirs, ours, strict=True)]
    spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    return [f"{median(theirs):.2f}", f"{median(ours):.2f}", f"{median(ratios):.2f}{spread}"]


def _ratio(theirs: list[float], ours: list[float]) -> str:
    return f"{median(our / their for their, our in zip(theirs, ours, strict=True)):.2f}"


def table_line(cells: list[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def say(*words: object) -> None:
    """Tell progress on standard error."""
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


def now() -> int:
    """Return the time in microseconds since 1970, which other processes of this machine have, too."""
    return time.time_ns() // 1000
