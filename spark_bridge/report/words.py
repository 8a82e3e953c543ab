"""Sentences about a plan that all forms of the report share."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from spark_bridge.model.goal import GoalKind
from spark_bridge.model.summary import Evenness, Summary
from spark_bridge.report.measures import BYTES, percent, size


@frozen
class Cost:
    """The cost of a plan and the least cost of any plan, in bytes, or in replicas if no sizes are known."""

    moved: int
    least: int
    in_replicas: bool

    @classmethod
    def of(cls, summary: Summary) -> Cost:
        """Return the cost of a plan; if no sizes are known, each replica costs 1."""
        if summary.partitions and not any(broker.before.bytes for broker in summary.brokers):
            return cls(summary.moved_replicas, summary.lower_bound, in_replicas=True)
        return cls(summary.moved_bytes, summary.lower_bound, in_replicas=False)

    @property
    def ratio(self) -> float | None:
        """Return the ratio of the cost to the least; None if the least is zero."""
        if self.moved == self.least:
            return 1.0
        return self.moved / self.least if self.least else None

    def text(self, number: int) -> str:
        """Return an amount with its unit."""
        return things(number, "replica") if self.in_replicas else size(number)

    def compared(self) -> str:
        """Return a comparison with the least cost, in words."""
        if self.moved == self.least:
            return "the plan moves no more than that" if self.moved else "nothing has to move"
        return f"the plan moves {self.ratio:.3f} times that" if self.ratio else "the goal forces no move"


def things(number: int, name: str) -> str:
    """Return a number of things, as 1 replica or 2 replicas."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def verdict(row: Evenness, summary: Summary) -> str:
    """Return the outcome for a measure in a word or two."""
    if row.measure == BYTES.name and summary.overfull:
        return "above disk"
    if row.after <= row.reachable + 1e-9:
        return "reached"
    return "nearer" if row.after < row.before else "as before" if row.after == row.before else "worse"


def is_idle(summary: Summary) -> bool:
    """Return whether a plan changes nothing."""
    return summary.changed == 0


IDLE = "Nothing has to change: the cluster is as the goal asks, or as close to that as possible."


def warnings(summary: Summary) -> Iterator[str]:
    """Yield the warnings to read before carrying out the plan."""
    yield from summary.warnings
    yield from judgements(summary)


def judgements(summary: Summary) -> Iterator[str]:
    """Yield sentences about how even the plan leaves the cluster, and about requests that may be mistakes."""
    if summary.needless:
        names = ", ".join(summary.needless)
        yield f"This plan was forced: it leaves {names} worse than before and out of tolerance."
    if asked := [row for row in summary.evenness if row.measure in {*summary.worse} - {*summary.needless}]:
        told = ", ".join(f"{row.measure} ({percent(row.after)}, before {percent(row.before)})" for row in asked)
        if summary.goal == GoalKind.REBALANCE:
            yield f"The forced moves leave the cluster less even in {told}: another rebalance may correct that."
        else:
            cure = "leaders" if [row.measure for row in asked] == ["leaders"] else "rebalance"
            yield f"The requested change leaves the cluster less even in {told}: `klamm plan {cure}` may correct that."
    yield from summary.notes


def moves_data(summary: Summary) -> bool:
    """Return whether the goal may move replicas; the goal for leaders changes only their order."""
    return summary.goal != GoalKind.LEADERS


ELECTION_WITH_ORDER = (
    "No data moves. `klamm leader elect --election-type preferred --path-to-json-file plan.json` orders replicas and "
    "elects the first; if `klamm reassignment execute` or Kafka's own tool orders them, elect preferred leaders "
    "afterwards."
)
ELECTION = (
    "The leaders shown are those after an election: when the moves are done, run "
    "`klamm leader elect --election-type preferred --all-topic-partitions`."
)


def caveats(summary: Summary) -> Iterator[str]:
    """Yield sentences about what the numbers do not show."""
    if any(broker.before.leaders != broker.after.leaders for broker in summary.brokers):
        yield ELECTION if moves_data(summary) else ELECTION_WITH_ORDER
    if Cost.of(summary).in_replicas and moves_data(summary):
        known = (
            "No size is known"
            if summary.unknown_loads == summary.partitions
            else "No partition is known to hold a byte"
        )
        yield f"{known}: each replica counts the same."
    elif summary.unknown_loads:
        of_all = f"{summary.unknown_loads:,} of {things(summary.partitions, 'partition')}"
        yield f"The size of {of_all} is not known: these count as empty."
    for fault, rows in summary.set_aside.items():
        yield f"{things(rows, 'row')} of the inputs {'was' if rows == 1 else 'were'} set aside: {fault}."
