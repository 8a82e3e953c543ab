"""`klamm cluster`: an overview of the cluster."""

from __future__ import annotations

from typing import Any

import click

from controller.admin.client import AdminClient
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.output import print_document, print_table
from transport.messages import DescribeClusterResponse, DescribedBroker

_BROKER_COLUMNS = ("id", "address", "rack", "epoch", "leaders", "replicas", "state")


@click.group()
def cluster() -> None:
    """Describe the cluster as a whole."""


@cluster.command()
@output_option
@cluster_options
def describe(cluster: Cluster, output: str) -> None:
    """Show the active controller, the brokers, and the number of unhealthy partitions."""
    found = cluster.ask(AdminClient.describe_cluster)
    brokers = [_broker(broker) for broker in found.brokers]
    if output != "table":
        print_document({**_summary(found), "brokers": brokers}, output)
        return
    print_table(("cluster", ""), [(name.replace("_", " "), value) for name, value in _summary(found).items()])
    click.echo()
    print_table(_BROKER_COLUMNS, [tuple(broker.values()) for broker in brokers])


def _summary(found: DescribeClusterResponse) -> dict[str, Any]:
    return {
        "controller": found.controller.id,
        "controller_address": f"{found.controller.host}:{found.controller.port}",
        "controller_epoch": found.controller_epoch,
        "topics": found.topics,
        "topics_being_deleted": found.topics_being_deleted,
        "partitions": found.partitions,
        "offline": found.offline,
        "under_replicated": found.under_replicated,
        "under_min_isr": found.under_min_isr,
        "without_preferred_leader": found.without_preferred_leader,
        "being_reassigned": found.being_reassigned,
        "quarantined": found.quarantined,
    }


def _broker(broker: DescribedBroker) -> dict[str, Any]:
    return {
        "id": broker.endpoint.id,
        "address": f"{broker.endpoint.host}:{broker.endpoint.port}",
        "rack": broker.endpoint.rack,
        "epoch": broker.epoch,
        "leaders": broker.leaders,
        "replicas": broker.replicas,
        "state": "shutting down" if broker.is_shutting_down else "live",
    }
