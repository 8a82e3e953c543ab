"""The summary of a plan, from broker-sized sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine
from spark_bridge.kernel.flows import Flows
from spark_bridge.kernel.leader_view import LeaderView
from spark_bridge.kernel.tally import Tally, all_loads, cost, moved
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import NOBODY, REPLICAS, Block
from spark_bridge.model.brokers import NO_RACK, Broker, Brokers, BrokerState
from spark_bridge.model.goal import FORCED_ONLY, Goal, LeaderScope
from spark_bridge.model.summary import Evenness, Flow, KeptReplicas, Load, PlannedBroker, RackFlow, Summary
from spark_bridge.notes import notes_of
from spark_bridge.outputs.reasons import TEXTS, Marks, Reason, reasons_of
from spark_bridge.plan_warnings import overfull_disks, spread_of, warnings_of
from spark_bridge.rounds.evenness import COLUMNS, evenness
from spark_bridge.rounds.leaders import leading
from spark_bridge.rounds.moves import Bounds
from spark_bridge.rounds.stranded import Stranded

MOST_FLOWS = 200
MOST_RACK_FLOWS = 10_000


@frozen(eq=False)
class AtLast:
    """The query for everything in a summary."""

    brokers: int
    marks: Marks

    def __call__(self, number: int, block: Block) -> Tally:
        """Return the tally of a block."""
        del number
        reasons = reasons_of(block, self.marks)
        by_broker = np.zeros((len(Reason), self.brokers + 1), np.int64)
        # NOBODY, -1, which stands for reasons that name no broker, counts in the last column.
        np.add.at(by_broker, (reasons.kind.astype(np.intp), reasons.broker), 1)
        return {
            "before": all_loads(block, self.brokers, before=True),
            "after": all_loads(block, self.brokers, before=False),
            "reasons": by_broker,
            "moved": np.array([len(block), int(moved(block).sum()), cost(block)]),
            "max_weight": block.weights.max(axis=0, initial=0),
            **spread_of(block, self.marks.rack),
        }


def marks_of(brokers: Brokers, bounds: Bounds) -> Marks:
    """Return the marks of brokers under the goal, for the reasons of changes."""
    relieved = np.zeros(len(brokers), np.bool_)
    relieved[bounds.terms.sheds & ~bounds.terms.takes] = True
    rack = bounds.terms.rack
    alone = np.arange(len(brokers), dtype=np.int32) + int(rack.max(initial=NOBODY)) + 1
    return Marks(bounds.terms.leaves, relieved, np.where(rack < 0, alone, rack), bounds.terms.limits)


@frozen(eq=False)
class Planned:
    """The parts of a summary."""

    engine: Engine
    brokers: Brokers
    goal: Goal
    bounds: Bounds
    leaders: LeaderView
    stranded: Stranded

    def evenness(self, tally: Tally) -> tuple[Evenness, ...]:
        """Return the evenness of the loads of all blocks."""
        shared = leading(self.brokers, self.bounds.terms)
        return evenness(self.bounds.terms, self.goal, np.where(shared, self.leaders.share, 0.0), tally)


def summarize(planned: Planned, set_aside: dict[str, int], unknown_loads: int) -> Summary:
    """Return the summary of a plan."""
    engine, brokers, goal, bounds = planned.engine, planned.brokers, planned.goal, planned.bounds
    tally = engine.ask(AtLast(len(brokers), marks_of(brokers, bounds)))
    even = planned.evenness(tally)
    worse = _worse(even)
    flows, flows_left = engine.flows(Flows(brokers.ids), MOST_FLOWS)
    rack_rows, _ = engine.flows(Flows(brokers.rack), MOST_RACK_FLOWS)
    partitions, replicas, size = tally["moved"].tolist()
    reasons = _reasons(tally["reasons"], brokers)
    changes = _changes(brokers, bounds, tally, planned.stranded)
    disks = tuple(overfull_disks(changes))
    kept = _kept(brokers, bounds, tally)
    return Summary(
        goal=str(goal.kind),
        options=_options(goal),
        engine=engine.name,
        partitions=partitions + planned.stranded.count,
        changed=sum(reasons.values()),
        reordered=int(tally["reasons"][Reason.PREFERRED_LEADER].sum()),
        moved_replicas=replicas,
        moved_bytes=size,
        lower_bound=bounds.lower_bound,
        brokers=changes,
        evenness=even,
        flows=tuple(flows),
        flows_left=flows_left,
        rack_flows=tuple(_between_racks(flow, brokers.rack_names) for flow in rack_rows),
        reasons=reasons,
        set_aside=set_aside,
        unknown_loads=unknown_loads,
        worse=worse,
        needless=needless(planned, tally, even) if worse else (),
        notes=tuple(notes_of(bounds, brokers, goal, even)),
        warnings=tuple(warnings_of(planned, tally, kept, disks)),
        kept=kept,
        stranded=planned.stranded.count,
        first_stranded=planned.stranded.first,
        unrepaired=bounds.unrepaired,
        overfull=disks,
    )


def _kept(brokers: Brokers, bounds: Bounds, tally: Tally) -> tuple[KeptReplicas, ...]:
    """Return what the plan leaves on brokers that do not serve, apart from partitions that it cannot change."""
    left = np.where(bounds.terms.keeps, tally["after"][:, REPLICAS], 0).tolist()
    return tuple(KeptReplicas(row.id, count) for row, count in zip(brokers.rows, left, strict=True) if count)


_ALMOST = 1e-3
"""Smaller increases of a distance, as a part of a share, are ignored: one more byte is not worth a warning.

The walls of evening out have no such slack, because plan after plan could use it up again.
"""


def _worse(even: Sequence[Evenness]) -> tuple[str, ...]:
    """Return the measures that end farther from their shares than they began, and than necessary."""
    return tuple(e.measure for e in even if e.after > max(e.before, e.reachable) + _ALMOST)


def needless(planned: Planned, tally: Tally, even: Sequence[Evenness]) -> tuple[str, ...]:
    """Return the measures that are less even than after the forced moves, if the goal evens out at all.

    If not all partitions may get another leader, leaders are a consequence of the moves.
    """
    if planned.goal.kind in FORCED_ONLY:
        return ()
    dealt = tally["after"].copy()
    dealt[:, COLUMNS] = planned.bounds.dealt
    if (planned.bounds.dealt == planned.bounds.before).all():
        dealt = tally["before"]
    # If no broker can lead before the moves and some can after them, leaders can be measured only after them.
    left = {e.measure: e.after for e in planned.evenness({**tally, "after": dealt})}
    worse = _worse([evolve(e, before=max(e.before, left.get(e.measure, 0.0))) for e in even])
    follows = planned.goal.leader_scope is not LeaderScope.ALL
    return tuple(measure for measure in worse if not (follows and measure == "leaders"))


def _between_racks(flow: Flow, names: tuple[str, ...]) -> RackFlow:
    """Name the racks of a flow between rack numbers."""
    source, destination = (None if n == NO_RACK else names[n] for n in (flow.source, flow.destination))
    return RackFlow(source, destination, flow.replicas, flow.bytes)


def _reasons(counts: NDArray[np.int64], brokers: Brokers) -> dict[str, int]:
    """Return the number of partitions that change by reason, in words; `counts` is by (reason, broker or none)."""
    ids = [*brokers.ids.tolist(), NOBODY]
    pairs = np.argwhere(counts[Reason.NONE + 1 :]).tolist()
    return {TEXTS[Reason(r + 1)].format(ids[b]): int(counts[r + 1, b]) for r, b in pairs}


def _options(goal: Goal) -> dict[str, str]:
    """Return the options as named on the command line, without those that have their default."""
    told = {
        "brokers": _list(goal.brokers),
        "exclude": _list(goal.exclude),
        "topics": ", ".join(goal.topics),
        "replication-factor": str(goal.replication_factor or ""),
        "tolerance": f"{100 * goal.tolerance:g} %",
        "leaders": str(goal.leader_scope),
        "ignore-racks": "" if goal.racks else "yes",
        "force": "yes" if goal.force else "",
        "dead-is-gone": "yes" if goal.dead_is_gone else "",
    }
    return {name: value for name, value in told.items() if value}


def _list(ids: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(ids)))


def _changes(brokers: Brokers, bounds: Bounds, tally: Tally, stranded: Stranded) -> tuple[PlannedBroker, ...]:
    before, after = ((tally[name] + stranded.load).tolist() for name in ("before", "after"))
    return tuple(
        PlannedBroker(
            id=broker.id,
            rack=broker.rack,
            state=_state(broker, bounds.terms, i),
            capacity=broker.capacity,
            disk=broker.disk,
            before=Load(*before[i]),
            after=Load(*after[i]),
        )
        for i, broker in enumerate(brokers.rows)
    )


def _state(broker: Broker, terms: Terms, index: int) -> str:
    """Return a broker's state under the goal: removed brokers are draining, and those it excludes are excluded."""
    if broker.state is not BrokerState.LIVE:
        return str(broker.state)
    if not broker.serves:
        return str(BrokerState.DEAD)
    if terms.leaves[index]:
        return str(BrokerState.DRAINING)
    return str(broker.state if terms.receives[index] else BrokerState.EXCLUDED)
