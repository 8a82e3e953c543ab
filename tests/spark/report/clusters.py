"""Summaries of invented plans: seeded, with the shapes that a report must show well."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random

from attrs import evolve

from spark_bridge.model.summary import Evenness, Flow, Load, PlannedBroker, RackFlow, Summary

GIGABYTE = 1_000_000_000
LISTED_FLOWS = 200


def load(part: float) -> Load:
    """Return what a broker of such a part of the mean carries."""
    return Load(
        replicas=round(900 * part),
        leaders=round(300 * part),
        bytes=round(1100 * GIGABYTE * part),
        bytes_in=round(40_000_000 * part),
        bytes_out=round(110_000_000 * part),
    )


def growth(brokers: int, added: int, racks: int, seed: int) -> Summary:
    """Return a plan that gives some new brokers their share, on a cluster that had grown skewed."""
    rng = Random(seed)
    rows = []
    for id_ in range(1, brokers + 1):
        is_new = id_ > brokers - added
        before = Load() if is_new else load(rng.lognormvariate(0.12, 0.22))
        after = load(rng.uniform(0.955, 1.045))
        rack = f"rack-{id_ % racks:02}" if racks else None
        rows.append(PlannedBroker(id_, rack, "live", 1.0, 2000 * GIGABYTE, before, after))
    return planned("rebalance", tuple(rows), rng)


def drain(brokers: int, leaving: int, racks: int, seed: int) -> Summary:
    """Return a plan that empties the first brokers."""
    rng = Random(seed)
    rows = []
    for id_ in range(1, brokers + 1):
        before = load(rng.uniform(0.9, 1.1))
        goes = id_ <= leaving
        after = Load() if goes else load(1.02 * brokers / (brokers - leaving) * rng.uniform(0.94, 1.06))
        rack = f"rack-{id_ % racks:02}" if racks else None
        rows.append(PlannedBroker(id_, rack, "draining" if goes else "live", 1.0, None, before, after))
    return planned("remove-brokers", tuple(rows), rng)


def planned(goal: str, brokers: tuple[PlannedBroker, ...], rng: Random) -> Summary:
    """Return a plan that has brokers end like that, with flows from those that lose to those that gain."""
    flows = sorted(_flows(brokers, rng), key=lambda flow: (-flow.bytes, flow.source, flow.destination))
    moved = sum(flow.bytes for flow in flows)
    replicas = sum(flow.replicas for flow in flows)
    leaving = {f"leaves broker {b.id}": b.before.replicas for b in brokers if b.state == "draining"}
    reasons = leaving or {"balance": max(replicas - 40, 0), "racks": min(replicas, 40), "preferred leader": 512}
    return Summary(
        goal=goal,
        options={"tolerance": "0.05", "racks": "yes"},
        engine="kernel",
        partitions=sum(b.before.replicas for b in brokers),
        changed=sum(reasons.values()),
        reordered=reasons.get("preferred leader", 0),
        moved_replicas=replicas,
        moved_bytes=moved,
        lower_bound=round(moved / 1.013),
        brokers=brokers,
        evenness=tuple(_evenness(brokers)),
        flows=tuple(flows[:LISTED_FLOWS]),
        flows_left=max(0, len(flows) - LISTED_FLOWS),
        reasons=reasons,
        set_aside={},
        unknown_loads=0,
        worse=(),
        needless=(),
        notes=(),
        rack_flows=tuple(_rack_flows(flows, brokers)),
    )


def still(summary: Summary) -> Summary:
    """Return the plan that is made after this one was carried out: it moves nothing."""
    return evolve(
        summary,
        changed=0,
        reordered=0,
        moved_replicas=0,
        moved_bytes=0,
        lower_bound=0,
        brokers=tuple(evolve(b, before=b.after) for b in summary.brokers),
        evenness=tuple(evolve(row, before=row.after) for row in summary.evenness),
        flows=(),
        flows_left=0,
        rack_flows=(),
        reasons={},
    )


def _flows(brokers: Iterable[PlannedBroker], rng: Random) -> Iterable[Flow]:
    gains = {b.id: b.after.bytes - b.before.bytes for b in brokers}
    wanted = {id_: gain for id_, gain in gains.items() if gain > 0}
    weights = list(wanted.values())
    for source, gain in gains.items():
        if gain >= 0 or not wanted:
            continue
        chosen = sorted(set(rng.choices(list(wanted), weights, k=12)))
        for destination in chosen:
            amount = -gain * wanted[destination] // sum(wanted[id_] for id_ in chosen)
            yield Flow(source, destination, max(1, amount * 900 // (1100 * GIGABYTE)), amount)


def _rack_flows(flows: Iterable[Flow], brokers: Iterable[PlannedBroker]) -> Iterable[RackFlow]:
    rack = {b.id: b.rack for b in brokers}
    sums: dict[tuple[str | None, str | None], list[int]] = defaultdict(lambda: [0, 0])
    for flow in flows:
        cell = sums[rack[flow.source], rack[flow.destination]]
        cell[0] += flow.replicas
        cell[1] += flow.bytes
    return (RackFlow(*pair, *cell) for pair, cell in sums.items())


def _evenness(brokers: Iterable[PlannedBroker]) -> Iterable[Evenness]:
    live = [b for b in brokers if b.state == "live"]
    for name in ("replicas", "leaders", "bytes", "bytes in"):
        field = name.replace(" ", "_")
        mean = sum(getattr(b.after, field) for b in live) / len(live) or 1
        before, after = (
            max(abs(getattr(getattr(b, when), field) / mean - 1) for b in live) for when in ("before", "after")
        )
        yield Evenness(name, before, after, 0.05)


def without_sizes(summary: Summary) -> Summary:
    """Return the plan of a cluster of which nobody has said how many bytes there are."""
    brokers = (evolve(b, before=evolve(b.before, bytes=0), after=evolve(b.after, bytes=0)) for b in summary.brokers)
    return evolve(summary, brokers=tuple(brokers), moved_bytes=0, unknown_loads=summary.partitions)
