"""The document that `klamm plan` prints for programs: the summary of a plan, with numbers derived from it."""

from __future__ import annotations

from msgspec import Struct

from spark_bridge.model.summary import Evenness, Flow, KeptReplicas, Load, OverfullDisk, PlannedBroker, RackFlow


class PlannedRack(Struct):
    """A rack before and after the plan, and the number of its brokers; null stands for all brokers without one."""

    rack: str | None
    brokers: int
    before: Load
    after: Load


class HotBroker(Struct):
    """A broker that stays above its share of a measure, and the reason."""

    broker: int
    measure: str
    load: int
    share: float
    excess: float
    why: str


class PlanReport(Struct):
    """The summary of a plan. Sizes are in bytes, rates in bytes per second, shares and excesses as they are compared.

    `ratio` compares what moves with the least that any plan can move; null where nothing has to move.
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
    brokers: list[PlannedBroker]
    evenness: list[Evenness]
    flows: list[Flow]
    flows_left: int
    reasons: dict[str, int]
    set_aside: dict[str, int]
    unknown_loads: int
    worse: list[str]
    needless: list[str]
    notes: list[str]
    rack_flows: list[RackFlow]
    warnings: list[str]
    kept: list[KeptReplicas]
    stranded: int
    first_stranded: list[str]
    unrepaired: int
    overfull: list[OverfullDisk]
    ratio: float | None
    racks: list[PlannedRack]
    hottest: list[HotBroker]
