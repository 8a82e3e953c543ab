"""The ids in a plan, as commands compare them with those of the cluster: see `controller.admin.plan_ids`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from controller.admin.plan_ids import Comparison, PlanIds, created_again
from transport.messages import PartitionState

PLAN_ANEW: Final = "plan anew"
OTHERWISE: Final = "name that one with --bootstrap-server, or go on here with --other-cluster"

other_cluster_option = click.option(
    "--other-cluster", is_flag=True, help="Carry the plan out although it was made on another cluster."
)


def ids_of(cluster_id: str | None, partitions: Iterable[PartitionState]) -> PlanIds:
    """Return the ids of a cluster and of topics, for what is written down about them."""
    return PlanIds(cluster_id, {state.topic: state.topic_id for state in partitions if state.topic_id})


def other_cluster_fault(found: Comparison) -> str:
    """Return that a plan was made on another cluster, and what to do; empty if it was not."""
    return f"{found.other_cluster}: {OTHERWISE}" if found.other_cluster else ""


def require_cluster(found: Comparison) -> None:
    """Raise click.ClickException if a plan was made on another cluster."""
    if fault := other_cluster_fault(found):
        raise click.ClickException(fault)


def require_topics(found: Comparison, cure: str = PLAN_ANEW) -> None:
    """Raise click.ClickException if topics were created again since the plan was made."""
    if found.created_again:
        raise click.ClickException(f"{created_again(found.created_again)}: {cure}")


def tell_unchecked(found: Comparison, *, is_plan: bool) -> None:
    """Say on stderr what could not be compared. Files that are no plans do not claim to know what they start from."""
    if is_plan and found.unchecked:
        click.echo(f"not checked: {'; '.join(found.unchecked)}", err=True)
