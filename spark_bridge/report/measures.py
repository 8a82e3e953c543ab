"""Measures of the load of brokers, and the form of their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import frozen

from spark_bridge.model.summary import BrokerChange, Load, Summary

_PLENTY: Final = 9.95  # from here on a decimal tells nothing
_MANY: Final = 100  # here too
_ALMOST: Final = 1e-9
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_DECIMALS: Final = (9.995, 99.95)  # below each of these there is room for one decimal more
_OVERFLOWS: Final = 999.5  # what three digits would write as 1000


def size(number: float) -> str:
    """Return a number of bytes in units of 1000, to three digits: enough to see that 1.13 TB is above 1.10 TB."""
    left, unit = abs(number), 0
    while left >= _OVERFLOWS and unit < len(_UNITS) - 1:
        left, unit = left / 1000, unit + 1
    decimals = sum(left < below for below in _DECIMALS) if unit else 0
    return f"{'-' if number < 0 else ''}{left:,.{decimals}f} {_UNITS[unit]}"


def count(number: float) -> str:
    """Return how many of something; a share of whole things may be a fraction."""
    return f"{number:,.0f}" if number == round(number) or abs(number) >= _MANY else f"{number:,.1f}"


def percent(part: float) -> str:
    """Return 0.05 as 5 %, with a decimal where that says more: 0.0502 is 5.0 %."""
    number = part * 100
    if abs(number) < _ALMOST:
        return "0 %"  # what rounding leaves of nothing may be negative
    return f"{number:,.0f} %" if abs(number) >= _PLENTY or abs(number - round(number)) < _ALMOST else f"{number:.1f} %"


@frozen
class Measure:
    """Something that each broker has an amount of.

    Attributes:
        name: As summaries and people call it.
        field: As `Load` calls it.
        write: How an amount is written.
        per: What follows the unit.
        whole: Whether it comes in whole pieces, so that a share of 2.5 is met by 2 and by 3.
    """

    name: str
    field: str
    write: Callable[[float], str]
    per: str = ""
    whole: bool = False

    @property
    def heading(self) -> str:
        """Return its name over amounts that are written without what follows the unit."""
        return f"{self.name}{self.per}"

    def text(self, amount: float) -> str:
        """Return an amount in full."""
        return f"{self.write(amount)}{self.per}"

    def of(self, load: Load) -> int:
        """Return how much of it there is in a load."""
        amount: int = getattr(load, self.field)
        return amount

    def difference(self, broker: BrokerChange) -> str:
        """Return what a plan changes, with a sign; nothing as a dash."""
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
    """Return the measures of which any broker has anything."""
    loads = [load for broker in summary.brokers for load in (broker.before, broker.after)]
    return tuple(measure for measure in (*EVENED, BYTES_OUT) if any(map(measure.of, loads)))
