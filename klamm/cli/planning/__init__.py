"""`klamm plan`: plans for large moves, and their reports. Planning itself moves nothing."""

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
    """Plan large moves of replicas, in this machine's memory or on Spark.

    Planning moves nothing. A plan is Kafka's reassignment JSON, for `klamm reassignment execute`; a report of its
    changes goes to stderr.
    """


@plan.command(GoalKind.REBALANCE.value)
@racks_option
@planning_options
def rebalance(**options: Unpack[Options]) -> None:
    """Even out the load of all brokers. Load means replicas, leaders, bytes and bytes in."""
    make_plan(GoalKind.REBALANCE, options)


@plan.command(GoalKind.ADD_BROKERS.value)
@brokers_option("The new brokers, such as 8,9.")
@racks_option
@planning_options
def add_brokers(**options: Unpack[Options]) -> None:
    """Give new brokers their share. No other broker receives anything.

    Partitions whose replicas could be in more racks are an exception: they are repaired.
    """
    make_plan(GoalKind.ADD_BROKERS, options)


@plan.command(GoalKind.REMOVE_BROKERS.value)
@brokers_option("The brokers to empty, such as 3,7.")
@racks_option
@planning_options
def remove_brokers(**options: Unpack[Options]) -> None:
    """Empty brokers, so that they can be stopped.

    The other brokers end as evenly loaded as possible without moving any other replica.
    """
    make_plan(GoalKind.REMOVE_BROKERS, options)


@plan.command(GoalKind.SET_REPLICATION_FACTOR.value)
@click.option(
    "--replication-factor", type=int, required=True, metavar="N", help="The number of replicas of each partition."
)
@topics_option
@racks_option
@planning_options
def set_replication_factor(**options: Unpack[Options]) -> None:
    """Change the number of replicas of partitions."""
    make_plan(GoalKind.SET_REPLICATION_FACTOR, options)


@plan.command(GoalKind.RELIEVE.value)
@brokers_option("The overloaded brokers, such as 3,7.")
@racks_option
@planning_options
def relieve(**options: Unpack[Options]) -> None:
    """Reduce the load of overloaded brokers. They keep their share, and nothing else moves."""
    make_plan(GoalKind.RELIEVE, options)


@plan.command(GoalKind.REPAIR_RACKS.value)
@planning_options
def repair_racks(**options: Unpack[Options]) -> None:
    """Spread partitions over more racks.

    Their replicas end in as many racks as possible. Nothing else moves.
    """
    make_plan(GoalKind.REPAIR_RACKS, options)


@plan.command(GoalKind.LEADERS.value)
@topics_option
@leader_options
def leaders(**options: Unpack[Options]) -> None:
    """Choose preferred leaders. No data moves.

    Every broker gets its share of all leaders with the fewest changes and, as far as that permits, its share of bytes
    out. `klamm leader elect --election-type preferred --path-to-json-file` carries out the whole plan.
    """
    make_plan(GoalKind.LEADERS, options)


plan.add_command(generate_cluster)
