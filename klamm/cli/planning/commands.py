"""The commands of `klamm plan`."""

from __future__ import annotations

from typing import Unpack

import click

from klamm.cli.planning.generating import generate_cluster
from klamm.cli.planning.making import make_plan
from klamm.cli.planning.options import (
    Options,
    brokers_option,
    leader_options,
    planning_options,
    racks_option,
    topics_option,
)
from spark_bridge.model.goal import GoalKind


@click.group()
def plan() -> None:
    """Plan big moves of replicas: in this machine's memory, or on Spark.

    Planning moves nothing. A plan is Kafka's reassignment JSON, for `klamm reassignment execute`; what it changes is
    told on stderr.
    """


@plan.command(GoalKind.REBALANCE.value)
@racks_option
@planning_options
def rebalance(**options: Unpack[Options]) -> None:
    """Even out replicas, leaders, bytes and bytes in over all brokers."""
    make_plan(GoalKind.REBALANCE, options)


@plan.command(GoalKind.ADD_BROKERS.value)
@brokers_option("The new brokers, such as 8,9.")
@racks_option
@planning_options
def add_brokers(**options: Unpack[Options]) -> None:
    """Give new brokers their share; no other broker receives anything.

    But for partitions whose replicas are not in as many racks as they can be: these are repaired.
    """
    make_plan(GoalKind.ADD_BROKERS, options)


@plan.command(GoalKind.REMOVE_BROKERS.value)
@brokers_option("The brokers to empty, such as 3,7.")
@racks_option
@planning_options
def remove_brokers(**options: Unpack[Options]) -> None:
    """Plan new places for all replicas on some brokers, which then can be stopped.

    The other brokers end as evenly loaded as moving only these replicas permits.
    """
    make_plan(GoalKind.REMOVE_BROKERS, options)


@plan.command(GoalKind.SET_REPLICATION_FACTOR.value)
@click.option("--replication-factor", type=int, required=True, metavar="N", help="How many replicas a partition gets.")
@topics_option
@racks_option
@planning_options
def set_replication_factor(**options: Unpack[Options]) -> None:
    """Add or take away replicas until every partition has as many as asked."""
    make_plan(GoalKind.SET_REPLICATION_FACTOR, options)


@plan.command(GoalKind.RELIEVE.value)
@brokers_option("The brokers that carry too much, such as 3,7.")
@racks_option
@planning_options
def relieve(**options: Unpack[Options]) -> None:
    """Take from some brokers what they carry above their share; nothing else moves."""
    make_plan(GoalKind.RELIEVE, options)


@plan.command(GoalKind.REPAIR_RACKS.value)
@planning_options
def repair_racks(**options: Unpack[Options]) -> None:
    """Spread the replicas of each partition over as many racks as there are; nothing else moves."""
    make_plan(GoalKind.REPAIR_RACKS, options)


@plan.command(GoalKind.LEADERS.value)
@topics_option
@leader_options
def leaders(**options: Unpack[Options]) -> None:
    """Choose preferred leaders among the brokers that have the partitions; no data moves.

    Every broker gets its share of all leaders, and of bytes out as far as that leaves room, by the fewest changes.
    `klamm leader elect --election-type preferred --path-to-json-file` carries the plan out in one go.
    """
    make_plan(GoalKind.LEADERS, options)


plan.add_command(generate_cluster)
