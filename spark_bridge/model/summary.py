"""The summary of a plan in broker-sized numbers, for reports. The moves themselves are in files."""

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
class PlannedBroker:
    """A broker before and after the plan. `state` is a `BrokerState`; `disk` is in bytes, None if unknown."""

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
        before: The distance before the plan.
        after: The distance after it is carried out.
        reachable: What the plan aimed at: the tolerance, or the closest to it that racks and whole replicas permit.
    """

    measure: str
    before: float
    after: float
    reachable: float


@frozen
class KeptReplicas:
    """The number of replicas that a plan leaves on a broker that does not serve."""

    broker: int
    replicas: int


@frozen
class OverfullDisk:
    """The bytes by which a broker ends above the size of its disk."""

    broker: int
    bytes_over: int


@frozen
class Summary:
    """A plan in numbers.

    Attributes:
        goal: The kind of goal, as named on the command line.
        options: The options of the plan, as text by name.
        engine: "kernel" or "spark".
        partitions: The number of partitions in the snapshot.
        changed: The number whose replica list changes (in `reordered` of them, only its order).
        reordered: The number that get another preferred leader and no new replica.
        moved_replicas: The number of replicas that move to another broker.
        moved_bytes: Their bytes.
        lower_bound: The least bytes that any plan under the same rules moves; or replicas, if no sizes are known.
        brokers: All brokers, by id.
        evenness: The evenness of each measure.
        flows: The largest flows between brokers, most bytes first, at most 200.
        flows_left: The number of flows that are not in `flows`.
        reasons: The number of partitions that change, by reason.
        set_aside: The number of input rows that were set aside, by what was wrong with them.
        unknown_loads: The number of partitions without a known size, which count as empty.
        worse: Measures that end less even than before and out of tolerance.
        needless: Those of them that no forced move makes less even; empty unless the plan was forced.
        notes: Sentences that a reader must see: what could not be reached and why.
        rack_flows: All movement by racks; empty if it was not counted, and then `flows` must serve.
        warnings: What a plan leaves at risk, a line for each.
        kept: What the plan leaves on brokers that do not serve.
        stranded: The number of partitions with copies only on such brokers, which the plan leaves out.
        first_stranded: The first of their names, at most 20.
        unrepaired: The number of partitions left with too many copies in a rack, because disks have no room.
        overfull: The brokers that end above the size of their disks.
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
    brokers: tuple[PlannedBroker, ...]
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
    warnings: tuple[str, ...] = ()
    kept: tuple[KeptReplicas, ...] = ()
    stranded: int = 0
    first_stranded: tuple[str, ...] = ()
    unrepaired: int = 0
    overfull: tuple[OverfullDisk, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """Return the summary as a JSON document."""
        return asdict(self)
