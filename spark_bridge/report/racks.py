"""The brokers and the movement of a plan, by rack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from attrs import asdict

from spark_bridge.model.brokers import BrokerState
from spark_bridge.model.summary import Flow, Load, PlannedBroker, RackFlow, Summary

NO_RACK = "(no rack)"


def rack_name(rack: str | None) -> str:
    """Return the name of a rack for users."""
    return NO_RACK if rack is None else rack


def by_rack(brokers: Iterable[PlannedBroker]) -> dict[str | None, list[PlannedBroker]]:
    """Return the brokers of each rack, ordered by name; brokers without a rack come last."""
    members: dict[str | None, list[PlannedBroker]] = defaultdict(list)
    for broker in brokers:
        members[broker.rack].append(broker)
    return {rack: members[rack] for rack in sorted(members, key=lambda rack: (rack is None, rack or ""))}


def together(members: list[PlannedBroker]) -> PlannedBroker:
    """Return some brokers as one, with the sum of their loads, and of the capacities of those that are live."""
    capacity = sum(broker.capacity for broker in members if broker.state == BrokerState.LIVE)
    state = BrokerState.LIVE if capacity else members[0].state
    before, after = (_sum(getattr(broker, when) for broker in members) for when in ("before", "after"))
    return PlannedBroker(members[0].id, members[0].rack, state, capacity, None, before, after)


def _sum(loads: Iterable[Load]) -> Load:
    rows = [asdict(load) for load in loads]
    return Load(**{name: sum(row[name] for row in rows) for name in rows[0]})


def rack_flows(summary: Summary) -> tuple[RackFlow, ...]:
    """Return the movement between racks; if it was not counted, that of the largest flows between brokers."""
    if summary.rack_flows:
        return summary.rack_flows
    rack = {broker.id: broker.rack for broker in summary.brokers}
    sums: dict[tuple[str | None, str | None], list[Flow]] = defaultdict(list)
    for flow in summary.flows:
        sums[rack.get(flow.source), rack.get(flow.destination)].append(flow)
    return tuple(
        RackFlow(*pair, sum(flow.replicas for flow in flows), sum(flow.bytes for flow in flows))
        for pair, flows in sums.items()
    )
