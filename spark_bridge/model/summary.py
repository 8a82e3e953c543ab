"""A plan told in broker-sized numbers: what a report shows. The moves themselves are files that workers wrote."""

from __future__ import annotations

from typing import Any

from attrs import asdict, frozen


@frozen
class Load:
    """The load of one broker: replicas, preferred leaderships, bytes, and bytes per second in and out."""

    replicas: int = 0
    leaders: int = 0
    bytes: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@frozen
class BrokerChange:
    """A broker before and after the plan. `state` is a `BrokerState`; `disk` is in bytes, None when nobody said."""

    id: int
    rack: str | None
    state: str
    capacity: float
    disk: int | None
    before: Load
    after: Load


@frozen
class Flow:
    """The movement from one broker to another: ids, replicas, bytes."""

    source: int
    destination: int
    replicas: int
    bytes: int


@frozen
class RackFlow:
    """The movement from one rack to another, or within one; None stands for all brokers without a rack."""

    source: str | None
    destination: str | None
    replicas: int
    bytes: int


@frozen
class Evenness:
    """The distance of the farthest broker from its share of a measure, as a part of that share (0.05 is 5 %).

    Attributes:
        measure: "replicas", "leaders", "bytes" or "bytes in".
        before: At the start.
        after: Once the plan is carried out.
        reachable: What the plan aimed at: the tolerance, or the nearest to it that racks and whole replicas permit.
    """

    measure: str
    before: float
    after: float
    reachable: float


@frozen
class Summary:
    """A plan in numbers.

    Attributes:
        goal: The goal's kind, as the command names it.
        options: The options it was planned with, as text by name.
        engine: "kernel" or "spark".
        partitions: How many the snapshot has.
        changed: How many get another replica list (of these, `reordered` only another order).
        reordered: How many get another preferred leader and no new replica.
        moved_replicas: How many replicas get a new broker.
        moved_bytes: Their bytes.
        lower_bound: No plan that meets the same rules moves fewer bytes; or replicas, where nobody has a byte.
        brokers: Every broker, by id.
        evenness: Each measure.
        flows: The greatest flows between brokers, most bytes first, at most 200; `flows_left` are not listed.
        flows_left: How many flows are not in `flows`.
        reasons: How many partitions change for which reason.
        set_aside: How many rows of the inputs were left out, by what was wrong with them.
        unknown_loads: How many partitions have no known size, and count as empty.
        worse: Measures that end worse than before and out of tolerance.
        needless: Those of them that nothing makes worse which had to move; not empty only in a forced plan.
        notes: Sentences that a reader must see: what could not be reached and why.
        rack_flows: All that moves, by racks; empty when nobody counted, and then `flows` must do.
    """

    goal: str
    options: dict[str, str]
    engine: str
    partitions: int
    changed: int
    reordered: int
    moved_replicas: int
    moved_bytes: int
    lower_bound: int
    brokers: tuple[BrokerChange, ...]
    evenness: tuple[Evenness, ...]
    flows: tuple[Flow, ...]
    flows_left: int
    reasons: dict[str, int]
    set_aside: dict[str, int]
    unknown_loads: int
    worse: tuple[str, ...]
    needless: tuple[str, ...]
    notes: tuple[str, ...]
    rack_flows: tuple[RackFlow, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """Return the summary as a JSON document."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Summary:
        """Read what `to_document` made, also after it went through JSON."""
        brokers = (
            BrokerChange(**{**row, "before": Load(**row["before"]), "after": Load(**row["after"])})
            for row in document["brokers"]
        )
        return cls(
            **{
                **document,
                "brokers": tuple(brokers),
                "evenness": tuple(Evenness(**row) for row in document["evenness"]),
                "flows": tuple(Flow(**row) for row in document["flows"]),
                "worse": tuple(document["worse"]),
                "needless": tuple(document["needless"]),
                "notes": tuple(document["notes"]),
                "rack_flows": tuple(RackFlow(**row) for row in document.get("rack_flows", ())),
            }
        )
