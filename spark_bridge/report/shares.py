"""The shares of brokers, and the brokers farthest above theirs."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from attrs import frozen

from spark_bridge.model.brokers import BrokerState
from spark_bridge.model.summary import PlannedBroker, Summary
from spark_bridge.report.measures import EVENED, LEADERS, Measure, percent
from spark_bridge.report.words import moves_data


@frozen
class Hot:
    """A broker that is above its share after the plan, in its worst measure.

    Attributes:
        broker: The broker.
        measure: The measure.
        share: Its share.
        excess: How far it is above its share, as a part of the share.
        beyond: Whether that is more than the plan aimed at.
    """

    broker: PlannedBroker
    measure: Measure
    share: float
    excess: float
    beyond: bool

    @property
    def why(self) -> str:
        """Return why the broker is hot, in words."""
        load = self.measure.text(self.measure.of(self.broker.after))
        share = self.measure.text(self.share)
        kept = ", and it is excluded: it keeps what it has" if self.broker.state == BrokerState.EXCLUDED else ""
        return f"{self.measure.name}: {load} is {percent(self.excess)} above its share of {share}{kept}"


def share_of(brokers: Sequence[PlannedBroker], measure: Measure) -> float:
    """Return the share of a measure for one unit of capacity, after the plan.

    A broker's share is its capacity times this. Only live brokers share; what the others keep is not divided.
    """
    live = [broker for broker in brokers if broker.state == BrokerState.LIVE]
    capacity = sum(broker.capacity for broker in live)
    return sum(measure.of(broker.after) for broker in live) / capacity if capacity else 0.0


def aims(summary: Summary) -> dict[str, float]:
    """Return the distance from its share that the plan aimed at for a broker, by measure, as a part of the share."""
    return {row.measure: row.reachable for row in summary.evenness}


def hottest(summary: Summary, most: int = 10) -> tuple[Hot, ...]:
    """Return the brokers that end farthest above their share, the farthest first."""
    evened = EVENED if moves_data(summary) else (LEADERS,)
    units = [(measure, share_of(summary.brokers, measure)) for measure in evened]
    aimed = aims(summary)
    found = []
    for broker in summary.brokers:
        above = [
            (_excess(broker, measure, unit * broker.capacity), measure, unit * broker.capacity)
            for measure, unit in units
            if unit
        ]
        excess, measure, share = max(above, key=lambda item: item[0], default=(0.0, evened[0], 0.0))
        if excess > 0:
            found.append(Hot(broker, measure, share, excess, excess > aimed.get(measure.name, 0.0) + 1e-9))
    return tuple(sorted(found, key=lambda hot: (-hot.excess, hot.broker.id))[:most])


def _excess(broker: PlannedBroker, measure: Measure, share: float) -> float:
    load = measure.of(broker.after)
    meets = ceil(share) if measure.whole else share
    return load / share - 1 if load > meets else 0.0


def that_change_most(summary: Summary, most: int) -> tuple[PlannedBroker, ...]:
    """Return the brokers whose load changes most in relation to a share, by id, without unchanged ones."""
    units = [(measure, share_of(summary.brokers, measure) or 1.0) for measure in EVENED]

    def change(broker: PlannedBroker) -> float:
        return max(abs(m.of(broker.after) - m.of(broker.before)) / unit / broker.capacity for m, unit in units)

    changed = [broker for broker in summary.brokers if broker.before != broker.after]
    changed.sort(key=lambda broker: (-change(broker), broker.id))
    return tuple(sorted(changed[:most], key=lambda broker: broker.id))
