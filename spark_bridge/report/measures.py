"""Measures of the load of brokers, and the form of their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import frozen

from spark_bridge.model.summary import Load, PlannedBroker, Summary

_PLENTY: Final = 9.95  # from here on a decimal adds nothing
_MANY: Final = 100  # here too
_ALMOST: Final = 1e-9
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_DECIMALS: Final = (9.995, 99.95)  # one more decimal below each of these
_OVERFLOWS: Final = 999.5  # three digits would show this as 1000


def size(number: float) -> str:
    """Return a number of bytes in units of 1000, with three digits, so that 1.13 TB and 1.10 TB differ."""
    left, unit = abs(number), 0
    while left >= _OVERFLOWS and unit < len(_UNITS) - 1:
        left, unit = left / 1000, unit + 1
    decimals = sum(left < below for below in _DECIMALS) if unit else 0
    return f"{'-' if number < 0 else ''}{left:,.{decimals}f} {_UNITS[unit]}"


def count(number: float) -> str:
    """Return a number of things; a share of whole things may be a fraction."""
    return f"{number:,.0f}" if number == round(number) or abs(number) >= _MANY else f"{number:,.1f}"


def percent(part: float) -> str:
    """Return 0.05 as 5 %, with a decimal if the number is not whole: 0.0502 is 5.0 %."""
    number = part * 100
    if abs(number) < _ALMOST:
        return "0 %"  # a rounding error of zero may be negative
    return f"{number:,.0f} %" if abs(number) >= _PLENTY or abs(number - round(number)) < _ALMOST else f"{number:.1f} %"


@frozen
class Measure:
    """A measure of the load of brokers.

    Attributes:
        name: Its name in summaries and for users.
        field: Its name in `Load`.
        write: Formats an amount.
        per: The text after the unit.
        whole: Whether amounts are whole, so that 2 and 3 both meet a share of 2.5.
    """

    name: str
    field: str
    write: Callable[[float], str]
    per: str = ""
    whole: bool = False

    @property
    def heading(self) -> str:
        """Return its name, with the text after the unit, for a column of amounts without that text."""
        return f"{self.name}{self.per}"

    def text(self, amount: float) -> str:
        """Return an amount with its unit."""
        return f"{self.write(amount)}{self.per}"

    def of(self, load: Load) -> int:
        """Return its amount in a load."""
        amount: int = getattr(load, self.field)
        return amount

    def difference(self, broker: PlannedBroker) -> str:
        """Return the change by a plan with its sign, a dash if there is none."""
        change = self.of(broker.after) - self.of(broker.before)
        return f"{'+' if change > 0 else ''}{self.write(change)}" if change else "-"


REPLICAS: Final = Measure("replicas", "replicas", count, whole=True)
LEADERS: Final = Measure("leaders", "leaders", count, whole=True)
BYTES: Final = Measure("bytes", "bytes", size)
BYTES_IN: Final = Measure("bytes in", "bytes_in", size, "/s")
BYTES_OUT: Final = Measure("bytes out", "bytes_out", size, "/s")

EVENED: Final = (REPLICAS, LEADERS, BYTES, BYTES_IN)
"""The measures that plans even out."""


def known(summary: Summary) -> tuple[Measure, ...]:
    """Return the measures in which some broker has a load."""
    loads = [load for broker in summary.brokers for load in (broker.before, broker.after)]
    return tuple(measure for measure in (*EVENED, BYTES_OUT) if any(map(measure.of, loads)))
