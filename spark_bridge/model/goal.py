"""What to plan for: a goal, the brokers it names, and the dial between evenness and less movement."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from spark_bridge.errors import PlanError

MOST_REPLICAS = 64
"""The greatest replication factor that is planned."""


class GoalKind(StrEnum):
    """What a plan is for, as the command line names it."""

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
"""The goals that move only what has to move."""


class LeaderScope(StrEnum):
    """Which partitions may get another preferred leader among the brokers that hold them anyway."""

    ALL = "all"
    TOUCHED = "touched"
    NONE = "none"


@frozen
class Goal:
    """A goal and its options.

    Attributes:
        kind: What the plan is for.
        brokers: The added, removed or relieved brokers; empty for the other kinds.
        replication_factor: The new one, for set-replication-factor.
        topics: Which topics get it, or other leaders, as names or patterns with `*`; empty for all.
        tolerance: How far from its share of the cluster a broker may end, as a part of that share: the dial. 0.05 is
            even; more moves less.
        racks: Whether racks count.
        leaders: Which partitions may get another preferred leader; None for what suits the kind.
        force: Accept a plan that leaves some measure worse without need.
        exclude: Brokers that get nothing new and keep what they have.
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

    def __attrs_post_init__(self) -> None:
        """Refuse what is no goal.

        Raises:
            PlanError: The options do not belong together or are out of range.
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
        """Return whether what has to leave its broker or its rack is moved."""
        return self.kind not in {GoalKind.RELIEVE, GoalKind.LEADERS}

    @property
    def leader_scope(self) -> LeaderScope:
        """Return which partitions may get another preferred leader."""
        if self.leaders is not None:
            return self.leaders
        even = {GoalKind.REBALANCE, GoalKind.ADD_BROKERS, GoalKind.LEADERS}
        return LeaderScope.ALL if self.kind in even else LeaderScope.TOUCHED
