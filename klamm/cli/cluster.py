"""`klamm cluster`: an overview of the cluster."""

from __future__ import annotations

from typing import Final

import click
from msgspec import Struct
from msgspec.structs import asdict, astuple

from controller.admin.client import AdminClient
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.visibility import WHOLE, Visibility
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.formats import Table, View, known, output_options
from klamm.cli.visibility import note
from transport.addresses import address_text
from transport.messages import DescribeClusterResponse, DescribedBroker

_COUNTS: Final = (
    *("controller_epoch", "topics", "topics_being_deleted", "partitions", "offline", "under_replicated"),
    *("under_min_isr", "without_preferred_leader", "being_reassigned"),
)
_BROKER_COLUMNS = ("id", "address", "rack", "epoch", "leaders", "replicas", "state")


@click.group()
def cluster() -> None:
    """Describe the cluster as a whole."""


class BrokerSummary(Struct):
    """A live broker. `address` is null if the controller cannot use its registration; `state` then says why."""

    id: int
    address: str | None
    rack: str | None
    epoch: int | None
    leaders: int
    replicas: int
    state: str


class ClusterSummary(Struct):
    """The cluster as a whole; a count that it does not give is null. All but the two of topics count partitions.

    `partial` says what is not counted because it is hidden from the user; null if everything is.
    """

    cluster_id: str | None
    controller: int | None
    controller_address: str | None
    controller_epoch: int | None
    topics: int | None
    topics_being_deleted: int | None
    partitions: int | None
    offline: int | None
    under_replicated: int | None
    under_min_isr: int | None
    without_preferred_leader: int | None
    being_reassigned: int | None
    quarantined: tuple[str, ...]
    brokers: list[BrokerSummary]
    partial: str | None = None


@cluster.command()
@output_options(ClusterSummary, watch=True)
@cluster_options
def describe(cluster: Cluster) -> View:
    """Show the controller, the brokers, and counts of partitions."""

    async def work(admin: ClusterAdmin) -> ClusterSummary:
        id_, described = await admin.cluster_id(), await admin.describe_cluster()
        # A controller of Klamm counts everything for those who may describe the cluster.
        visibility = WHOLE if isinstance(admin, AdminClient) else await admin.visibility(settings=True)
        return _summary(id_, described, visibility)

    found = cluster.ask(work)
    beside = {"brokers", "partial"}
    facts = [(name.replace("_", " "), value) for name, value in asdict(found).items() if name not in beside]
    brokers = Table(_BROKER_COLUMNS, [astuple(broker) for broker in found.brokers], wide={"epoch"})
    return View(found, [Table(("cluster", ""), facts), "", brokers, *note(found.partial)])


def _summary(cluster_id: str | None, found: DescribeClusterResponse, visibility: Visibility) -> ClusterSummary:
    controller = found.controller
    at = address_text(controller.host, controller.port) if controller.host else None
    counts = {name: known(getattr(found, name)) for name in _COUNTS}
    if not visibility.sees_moves:
        counts["being_reassigned"] = None
    brokers, lacking = list(map(_broker, found.brokers)), visibility.lacking_counts(found.under_min_isr)
    partial = "; ".join(lacking) or None
    return ClusterSummary(
        cluster_id, known(controller.id), at, quarantined=found.quarantined, brokers=brokers, partial=partial, **counts
    )


def _broker(broker: DescribedBroker) -> BrokerSummary:
    at = broker.endpoint
    address = address_text(at.host, at.port) if at.host else None
    epoch, state = known(broker.epoch), _state(broker)
    return BrokerSummary(at.id, address, at.rack, epoch, broker.leaders, broker.replicas, state)


def _state(broker: DescribedBroker) -> str:
    if broker.fault:
        return f"unusable: {broker.fault}"
    return "shutting down" if broker.is_shutting_down else "live"
