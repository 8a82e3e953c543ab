"""The goal of a plan: its kind, the brokers it names, and the tolerance, which trades evenness for less movement."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from spark_bridge.errors import PlanError

MOST_REPLICAS = 64
"""The largest replication factor that can be planned."""


class GoalKind(StrEnum):
    """The kind of a goal, as named on the command line."""

    REBALANCE = "rebalance"
    ADD_BROKERS = "add-brokers"
    REMOVE_BROKERS = "remove-brokers"
    SET_REPLICATION_FACTOR = "set-replication-factor"
    RELIEVE = "relieve"
    REPAIR_RACKS = "repair-racks"
    LEADERS = "leaders"


FORCED_ONLY = frozenset(
    {GoalKind.REMOVE_BROKERS, GoalKind.SET_REPLICATION_FACTOR, GoalKind.REPAIR_RACKS, GoalKind.LEADERS}
)
"""The goals that make forced moves only."""


class LeaderScope(StrEnum):
    """The partitions whose preferred leader may change to another of their replicas."""

    ALL = "all"
    TOUCHED = "touched"
    NONE = "none"


@frozen
class Goal:
    """A goal and its options.

    Attributes:
        kind: The kind of goal.
        brokers: The added, removed or relieved brokers; empty for the other kinds.
        replication_factor: The new replication factor, for set-replication-factor.
        topics: The topics that get it, or whose leaders may change, as names or patterns with `*`; empty for all.
        tolerance: How far from its share a broker may end, as a part of the share. A larger tolerance moves less.
        racks: Whether racks count.
        leaders: The partitions whose preferred leader may change; None for the default of the kind.
        force: Whether to accept a plan that makes a measure less even without need.
        exclude: Brokers that receive nothing new and keep what they have.
        dead_is_gone: Whether brokers that do not serve lose their replicas, as if the goal removed them.
    """

    kind: GoalKind
    brokers: frozenset[int] = frozenset()
    replication_factor: int | None = None
    topics: tuple[str, ...] = ()
    tolerance: float = field(default=0.05)
    racks: bool = True
    leaders: LeaderScope | None = None
    force: bool = False
    exclude: frozenset[int] = frozenset()
    dead_is_gone: bool = False

    def __attrs_post_init__(self) -> None:
        """Reject invalid options.

        Raises:
            PlanError: Options do not fit together or are out of range.
        """
        named = {GoalKind.ADD_BROKERS, GoalKind.REMOVE_BROKERS, GoalKind.RELIEVE}
        if self.kind in named and not self.brokers:
            raise PlanError(f"{self.kind} needs brokers: name at least one")
        if both := sorted(self.brokers & self.exclude):
            raise PlanError(f"broker {both[0]} is both named and excluded: it can be one of them")
        if not 0 < self.tolerance <= 1:
            raise PlanError(f"the tolerance must be above 0 and at most 1 (0.05 is 5 %), not {self.tolerance}")
        if self.kind is GoalKind.LEADERS and self.leaders not in {None, LeaderScope.ALL}:
            raise PlanError("leaders is about all partitions, or those of some topics: leave the scope of leaders out")
        wants_factor = self.kind is GoalKind.SET_REPLICATION_FACTOR
        if wants_factor and not (self.replication_factor and 1 <= self.replication_factor <= MOST_REPLICAS):
            raise PlanError(f"the replication factor must be from 1 to {MOST_REPLICAS}, not {self.replication_factor}")

    @property
    def mends(self) -> bool:
        """Return whether replicas that must leave their broker or rack are moved."""
        return self.kind not in {GoalKind.RELIEVE, GoalKind.LEADERS}

    @property
    def leader_scope(self) -> LeaderScope:
        """Return the partitions whose preferred leader may change."""
        if self.leaders is not None:
            return self.leaders
        even = {GoalKind.REBALANCE, GoalKind.ADD_BROKERS, GoalKind.LEADERS}
        return LeaderScope.ALL if self.kind in even else LeaderScope.TOUCHED
